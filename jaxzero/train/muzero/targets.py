"""Targets from windows of steps: values, rewards and policies for the states that the model unrolls.

A window begins at time t, and the model unrolls K steps from there. State k is one of three: running; absorbing, after
an episode that ended by its rules, where rewards and values are 0; or unknown, after the last state of an episode that
was cut, where there is no target.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["Targets", "make_targets", "returns", "state_masks"]


class Targets(NamedTuple):
    """The targets along an unroll of K steps.

    Attributes:
        policy: the search's improved policy of states 0 ... K.
        value: the return of states 0 ... K, for the player to act there; 0 in absorbing ones.
        reward: what steps 0 ... K − 1 pay to the player who acts; 0 from absorbing states.
        running: which of the states 0 ... K have policy targets.
        known: which of the states 0 ... K have targets for their values, and for the rewards on the way there.
        sampled: for continuous actions, those that the policy is over; None: they are numbers.
        random: whether the action of steps 0 ... K − 1 was drawn at random; then the return after it says nothing about
            the value of the state before it. None: none was.
    """

    policy: Float[Array, "n K1 A"]
    value: Float[Array, "n K1"]
    reward: Float[Array, "n K"]
    running: Bool[Array, "n K1"]
    known: Bool[Array, "n K1"]
    sampled: Float[Array, "n K1 A D"] | None = None
    random: Bool[Array, "n K"] | None = None


def state_masks(terminated: Bool[Array, "n K"], last: Bool[Array, "n K"]) -> tuple[Array, Array]:
    """Which of the states 0 ... K are running, and which are known, `[n, K + 1]` each, from the ends in the K steps.

    >>> ends, none = jnp.array([[False, True, False]]), jnp.zeros((1, 3), bool)
    >>> [x.tolist() for x in state_masks(terminated=ends, last=none)]  # then absorbing
    [[[True, True, False, False]], [[True, True, True, True]]]
    >>> [x.tolist() for x in state_masks(terminated=none, last=ends)]  # then unknown
    [[[True, True, False, False]], [[True, True, False, False]]]
    """
    start = jnp.ones((len(last), 1), jnp.bool_)
    over = jnp.cumsum(terminated | last, axis=1) > 0
    running = jnp.concatenate([start, ~over], 1)
    cut = jnp.cumsum(running[:, :-1] & last, axis=1) > 0  # the first end decides: later steps are of other episodes
    return running, jnp.concatenate([start, ~cut], 1)


def returns(
    reward: Float[Array, "n W"],
    value: Float[Array, "n W"],
    terminated: Bool[Array, "n W"],
    last: Bool[Array, "n W"],
    random: Bool[Array, "n W"],
    *,
    unroll: int,
    steps: int,
    discount: float,
    trace: float = 1.0,
) -> Float[Array, "n K1"]:
    """The return of the first K + 1 states of each window, each over at most `steps` steps.

        G(t, 0) = ν[t],   G(t, m) = r[t] + γ · ((1 − λ) · ν[t+1] + λ · G(t+1, m − 1))

    with G(t + 1, ·) = ν[t + 1] = 0 after the end of an episode, and G(t, m) = ν[t] where no step follows (`last`) or
    the step says nothing about the value (`random`). With λ = 1 these are MuZero's n-step returns (Schrittwieser et
    al. 2020, section 3); with λ < 1 those of TD(λ), cut after n steps (Sutton & Barto 2018, eq. 12.9).

    Args:
        reward: of steps t ... t + W − 1, W = unroll + steps + 1; the last one is not read.
        value: ν, of the states, for the player to act.
        terminated: the step ended the episode.
        last: no step follows.
        random: the action was drawn at random.
        unroll: K.
        steps: n, 1 or more.
        discount: γ; −γ where two players alternate, because ν[t + 1] is the other's.
        trace: λ.

    Raises:
        ValueError: steps < 1, or windows of another length.

    >>> reward, value = jnp.array([[1.0, 1.0, 1.0, 5.0]]), jnp.array([[9.0, 9.0, 20.0, 9.0]])
    >>> never, ends = jnp.zeros((1, 4), bool), jnp.array([[False, True, False, False]])
    >>> given = dict(last=never, random=never, unroll=1, steps=2, discount=0.5)
    >>> returns(reward, value, never, **given).tolist()  # 1 + 1/2 + 20/4, and 1 + 1/2 + 9/4
    [[6.5, 3.75]]
    >>> returns(reward, value, ends, **given).tolist()  # the episode ends with step 1: 1 + 1/2, and 1
    [[1.5, 1.0]]
    """
    needed = unroll + steps + 1
    if steps < 1 or reward.shape[1] != needed:
        raise ValueError(
            f"returns: unroll={unroll} and steps={steps} need windows of {needed} steps, and steps >= 1; given are "
            f"{reward.shape[1]}."
        )
    states = unroll + 1
    stays = last | random

    def back(following: Array, offset: Array) -> tuple[Array, None]:
        cut = lambda x, i=0: jax.lax.dynamic_slice_in_dim(x, offset + i, states, axis=1)
        ahead = (1 - trace) * cut(value, 1) + trace * following
        gained = cut(reward) + discount * jnp.where(cut(terminated), 0.0, ahead)
        return jnp.where(cut(stays), cut(value), gained), None

    start = jax.lax.slice_in_dim(value, steps, steps + states, axis=1)
    return jax.lax.scan(back, start, jnp.arange(steps), reverse=True)[0]


def make_targets(
    policy: Float[Array, "n K1 A"],
    reward: Float[Array, "n W"],
    value: Float[Array, "n W"],
    terminated: Bool[Array, "n W"],
    last: Bool[Array, "n W"],
    random: Bool[Array, "n W"],
    *,
    unroll: int,
    steps: int,
    discount: float,
    trace: float = 1.0,
) -> Targets:
    """All targets of windows; the arguments are those of `returns`, and the policies of the first K + 1 states."""
    running, known = state_masks(terminated[:, :unroll], last[:, :unroll])
    found = returns(reward, value, terminated, last, random, unroll=unroll, steps=steps, discount=discount, trace=trace)
    paid = jnp.where(running[:, :-1], reward[:, :unroll], 0.0)
    value = jnp.where(running, found, 0.0)
    return Targets(policy, value, paid, running, known, random=random[:, :unroll])
