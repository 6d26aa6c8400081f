"""MuZero's learner: windows of the replay, fresh targets for some of them, the unrolled loss, one jitted scan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from jaxzero.environments.environment import signed_discount
from jaxzero.train.muzero import sequence_replay as replay
from jaxzero.train.muzero.reanalyse import reanalysed, replaced
from jaxzero.train.muzero.sequence_replay import Sequences, Starts
from jaxzero.train.muzero.targets import Targets, make_targets
from jaxzero.train.muzero.unroll_loss import LossWeights, UnrollLosses, unroll_loss
from jaxzero.train.parameter_update import Learner, parameter_update
from jaxzero.types import Keys, Params

__all__ = ["MuZeroLosses", "muzero_learner"]

LOSS = 2**30  # folded into a minibatch's keys for the loss; small numbers could coincide with `split`


class MuZeroLosses(NamedTuple):
    """Means over the minibatches that were learned from; and the number of those that were not: `skipped`.

    Attributes:
        total: the loss.
        parts: by head and step of the unroll.
        gradient_norm: before it was clipped.
        skipped: minibatches that changed nothing.
    """

    total: Float[Array, ""]
    parts: UnrollLosses
    gradient_norm: Float[Array, ""]
    skipped: Float[Array, ""]


def muzero_learner(
    environment: Any,
    network: Any,
    *,
    batch_size: int,
    unroll: int = 5,
    steps: int = 10,
    trace: float = 1.0,
    weights: LossWeights = LossWeights(),
    fresh: Callable | None = None,
    share: float = 0.0,
    alpha: float = 1.0,
    beta: float = 1.0,
    weight_decay: float = 1e-4,
    average_decay: float = 0.99,
    clip_norm: float = 5.0,
    direction: optax.GradientTransformation = optax.scale_by_adam(),
    loss: Callable | None = None,
    devices: tuple[str, int] | None = None,
) -> tuple[Callable[[Params], Learner], Callable[..., tuple[Learner, Sequences, MuZeroLosses]]]:
    """A learner, as two functions.

    `begin(params) -> Learner`;
    `update(learner, rings, keys, learning_rate, minibatches) -> (Learner, rings, MuZeroLosses)`: `minibatches` (static)
    steps of the optimiser on windows of the replay, shown through random symmetries; one key per part of the rings.
    Where windows are drawn by priority, the sampled ones get new priorities.

    Published for Atari (Schrittwieser et al. 2020): K = 5, n = 10, γ = 0.997, α = β = 1; for board games n up to the
    end of the game, γ = 1, uniform.

    Args:
        environment: for its discount, its players and its symmetries.
        network: a `LearnedNetwork`.
        batch_size: windows per minibatch, over all devices.
        unroll: K, steps that the model is unrolled; 0: no dynamics are learned, for a search in the simulator.
        steps: n, of the returns.
        trace: λ of the returns.
        weights: of the parts of the loss.
        fresh: `(params, keys, observation, legal, later) -> (policies, values, later values)`, see `reanalyse`.
        share: the part of each minibatch that gets fresh targets, computed with the moving average of the parameters,
            which serves as target network.
        alpha: the exponent of priorities.
        beta: the exponent of the correcting weights.
        weight_decay: see `parameter_update`.
        average_decay: likewise.
        clip_norm: likewise.
        direction: likewise.
        loss: `(network, params, seen [n, K + 1, ...], action, targets, weight, weights=, keys=, axis=)`, with a key for
            each part of the windows, which returns the same as `unroll_loss`, like `stochastic_loss`. None:
            `unroll_loss`.
        devices: name and size of the mesh axis over which `update` is mapped, each device with its rings. None: there
            is one device only.

    Raises:
        ValueError: a batch that the devices cannot share, K below 0, n below 1, λ or the share outside 0 ... 1, or a
            share without `fresh`, or of continuous actions, whose fresh policies would be over other samples.
    """
    axis, shares = devices or (None, 1)
    axis = axis if shares > 1 else None
    if batch_size < 1 or batch_size % shares:
        raise ValueError(f"learner: batch_size={batch_size} on {shares} device(s): give a multiple of {shares}, >= 1.")
    if unroll < 0 or steps < 1 or not 0 <= trace <= 1:
        raise ValueError(
            f"learner: unroll={unroll} must be 0 or more, steps={steps} 1 or more, and trace={trace} in 0 ... 1."
        )
    if reanalysed(share, batch_size) and fresh is None:
        raise ValueError(f"learner: share={share} of each minibatch is to be searched anew: give fresh=reanalyse(...).")
    if reanalysed(share, batch_size) and environment.bounds is not None:
        raise ValueError(
            f"learner: share={share} with continuous actions: a fresh search samples other actions than those stored, "
            "so its policy cannot replace theirs. Use share=0."
        )
    signed = signed_discount(environment)
    length = unroll + steps + 1
    # From this state of a window on, returns may bootstrap from values. Beyond the searched states, only one earlier
    # value is needed: that of the first state at which returns are cut.
    bootstrap = max(steps, unroll + 1) if trace == 1 else unroll + 1
    begin, apply = parameter_update(
        weight_decay=weight_decay, average_decay=average_decay, clip_norm=clip_norm, direction=direction
    )

    many = unroll + 1 if loss or weights.consistency else 1  # observations of a window that the loss looks at
    loss = _of_first_state if loss is None else loss

    def windows(params: Params, rings: Sequences, keys: Keys) -> tuple[Starts, tuple]:
        k_start, k_fresh, k_symmetry, k_action = jax.vmap(lambda k: jax.random.split(k, 4), out_axes=1)(keys)
        starts = replay.sample(rings, k_start, batch_size // shares, length, alpha, beta)
        get = lambda field, many, some=starts: replay.window(rings, field, some, many)
        s = rings.steps
        reward, value, terminated, last, random = get((s.reward, s.value, s.terminated, s.last, s.random), length)
        policy = get(s.policy, unroll + 1)
        parts = len(keys)
        each = reanalysed(share, batch_size // shares // parts)
        if share and not each:
            raise ValueError(
                f"learner: share={share} of the {batch_size // shares // parts} windows of each of {parts} parts "
                "rounds to 0: give a larger share or batch_size, fewer parts, or share=0."
            )
        if fresh is not None and each:
            some = jax.tree.map(lambda x: x.reshape(parts, -1)[:, :each].reshape(-1), starts)
            seen, legal = get((s.observation, s.legal), unroll + 1, some)
            cut = _first_cut(get((s.last, s.random), length, some), unroll + 1)
            at = jnp.concatenate(
                [jnp.broadcast_to(jnp.arange(bootstrap, length), (len(cut), length - bootstrap)), cut], 1
            )
            later = replay.at_times(rings, s.observation, some, at)
            drawn = jax.vmap(lambda k: jax.random.split(k, each))(k_fresh).reshape(-1)
            policies, searched, valued = fresh(params, drawn, seen, legal, later)
            known = get(s.value, length, some).at[:, : unroll + 1].set(searched)
            known = known.at[jnp.arange(len(at))[:, None], at].set(valued)
            policy, value = replaced(policy, policies, parts), replaced(value, known, parts)
        targets = make_targets(
            policy, reward, value, terminated, last, random, unroll=unroll, steps=steps, discount=signed, trace=trace
        )
        action = _any_after_the_end(k_action, get(s.action, unroll), targets, environment.num_actions)
        if s.sampled is not None:
            sampled = get(s.sampled, unroll + 1)
            targets = targets._replace(sampled=sampled)
            action = jnp.take_along_axis(sampled[:, :-1], action[..., None, None], 2)[:, :, 0]
        seen = get(s.observation, many)
        return starts, _through_symmetries(environment, k_symmetry, seen, action, targets)

    def step(state: Learner, rings: Sequences, keys: Keys, learning_rate: Any) -> tuple:
        starts, (seen, action, targets) = windows(state.average, rings, keys)
        given = seen, action, targets, starts.weight
        k_loss = jax.vmap(lambda key: jax.random.fold_in(key, LOSS))(keys)
        of = lambda p: loss(network, p, *given, weights=weights, keys=k_loss, axis=axis)
        (total, (parts, error)), gradients = jax.value_and_grad(of, has_aux=True)(state.params)
        if shares > 1:
            gradients, total = jax.lax.pmean((gradients, total), axis)
        state, norm, bad = apply(state, gradients, total, learning_rate)
        rings = replay.reprioritise(rings, starts, jnp.nan_to_num(error, nan=1.0, posinf=1.0))
        return state, rings, MuZeroLosses(total, parts, norm, bad.astype(jnp.float32))

    def update(state: Learner, rings: Sequences, keys: Keys, learning_rate: Any, minibatches: int) -> tuple:
        keys = jax.vmap(lambda k: jax.random.split(k, minibatches), out_axes=1)(keys)

        def one(carry: tuple, keys: Keys) -> tuple:
            *carry, losses = step(*carry, keys, learning_rate)
            return tuple(carry), losses

        (state, rings), losses = jax.lax.scan(one, (state, rings), keys)
        learned = minibatches - losses.skipped.sum()  # if it is 0, the means are NaN
        good = lambda x: jnp.where((losses.skipped > 0).reshape(-1, *[1] * (x.ndim - 1)), 0, x).sum(0) / learned
        return state, rings, jax.tree.map(good, losses)._replace(skipped=losses.skipped.sum())

    return begin, update


def _of_first_state(
    network: Any, params: Params, seen: Array, *given: Any, weights: LossWeights, keys: Keys, axis: Any
) -> tuple:
    """MuZero's loss: the first state is unrolled, and the later observations are for the consistency loss."""
    del keys
    later = seen[:, 1:] if weights.consistency else None
    return unroll_loss(network, params, seen[:, 0], *given, weights=weights, later=later, axis=axis)


def _first_cut(ends: tuple[Array, Array], first: int) -> Array:
    """For each window the first state, from `first` on, at which returns are cut; the last state if there is none."""
    stays = (ends[0] | ends[1])[:, first:-1]
    found = jnp.argmax(stays, axis=1, keepdims=True) if stays.shape[1] else jnp.zeros((len(stays), 1), jnp.int32)
    return first + jnp.where(stays.any(1, keepdims=True), found, stays.shape[1])


def _any_after_the_end(keys: Keys, action: Array, targets: Targets, num_actions: int) -> Array:
    """The actions, but random ones in absorbing states, so that the model learns that no action is paid there."""
    draw = lambda key: jax.random.randint(key, (len(action) // len(keys), action.shape[1]), 0, num_actions)
    return jnp.where(targets.running[:, :-1], action, jax.vmap(draw)(keys).reshape(action.shape))


def _through_symmetries(environment: Any, keys: Keys, seen: Array, action: Array, targets: Targets) -> tuple:
    """Each window through one of the environment's symmetries, drawn uniformly."""
    symmetries = environment.symmetries
    if len(symmetries) < 2:
        return seen, action, targets

    def one(which: Array, seen: Array, action: Array, policy: Array) -> tuple:
        def through(symmetry: Any) -> Callable:
            forth = jnp.array(symmetry.actions)
            back = jnp.argsort(forth)
            return lambda o, a, p: (jax.vmap(symmetry.observation)(o), back[a].astype(a.dtype), p[:, forth])

        return jax.lax.switch(which, [through(s) for s in symmetries], seen, action, policy)

    draw = lambda key: jax.random.randint(key, (len(action) // len(keys),), 0, len(symmetries))
    which = jax.vmap(draw)(keys).reshape(-1)
    seen, action, policy = jax.vmap(one)(which, seen, action, targets.policy)
    return seen, action, targets._replace(policy=policy)
