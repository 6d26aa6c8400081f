"""Sampled actions: each node considers K sampled actions, for large or continuous action spaces.

Hubert, Schrittwieser, Antonoglou, Barekatain, Schmitt and Silver 2021, "Learning and planning in complex action spaces"
(Sampled MuZero). K actions are drawn from a proposal β, which may be the policy π itself; β̂(a) is the share of a among
the draws. The search uses the prior (β̂/β) π in place of π, which corrects for drawing likely actions more often. If β
is π, that is β̂: the shares. Sums over the sample with these weights are unbiased estimates of sums over all actions,
and the improved policy of the sample tends to that of all actions as K grows. As priors sum to 1 here, (β̂/β) π is
divided by its sum over the sample, which is 1 if β is π, and tends to 1 otherwise.

* `with_sampled_actions`: actions are numbers, drawn from the model's logits. Equal draws become one edge.
* `with_continuous_actions`: actions are arrays, drawn by a function of the model's policy parameters. Equal draws
  become one edge, too: its siblings are closed.

Edges are K slots (see `jaxzero.options.legal_slots`); a node costs as if there were K actions. The sample belongs to
the node: it is drawn once, from the game's key and the simulation, and is kept with the subtree. The other options work
as usual, except `avoid_proven`: if all sampled moves lose, that does not prove that all moves do. With `transpositions`
two visits of one position are two samples: `canonical=lambda slots: slots.state` keeps the first.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.options.legal_slots import by_number, in_slots, number_type
from jaxzero.options.slot_actions import at_slot, slots_of
from jaxzero.root.summary import Summary
from jaxzero.search.checks.argument_checks import counts
from jaxzero.search.checks.model_checks import at_least_float32, checked
from jaxzero.search.tree import NONE
from jaxzero.types import Keys, Model, Params, PolicyOutput, State, Step, in_short

__all__ = ["Sample", "SampledInfo", "gaussian_sample", "with_continuous_actions", "with_sampled_actions"]

WHOLE = 2**30  # the sum of all probabilities as integers, whose sums are exact


class Sample(NamedTuple):
    """Actions drawn at one node per game.

    Attributes:
        action: the actions, each an array of any shape.
        log_prior: log π of each.
        log_proposal: log β of each, the density that they were drawn from; None: they were drawn from π.
    """

    action: Float[Array, "B K S"]
    log_prior: Float[Array, "B K"]
    log_proposal: Float[Array, "B K"] | None = None


class SampledInfo(NamedTuple):
    """Diagnostics of a search over sampled arrays, per game.

    Attributes:
        status: bits of `Status`; 0: nothing to report.
        overflows: walks that found the tree full.
        size: node slots in use.
        summary: visits, their shares, Q-values and value at the root, by sampled action.
        actions: the actions sampled at the root, which `action_weights` is about.
    """

    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    size: Int[Array, "B"]
    summary: Summary
    actions: Float[Array, "B K S"]

    __repr__ = in_short


def with_sampled_actions(
    build: Callable[[Model], Any], model: Model, num_samples: int, temperature: float | Float[Array, ""] = 1.0
) -> Any:
    """A policy that considers, at each node, the actions among K draws.

    Args:
        build: makes the policy, given a model: `lambda model: jz.muzero(model, 50)`.
        model: what the tree is made of; its logits are those of π.
        num_samples: K, draws with replacement.
        temperature: τ of the proposal, β ∝ π^(1/τ): above 1 unlikely actions are drawn more often; may be traced.

    Returns:
        `(params, keys, state, tree=None) -> PolicyOutput`; its actions, weights and `info.summary` are by action, its
        info is a `SlotsInfo`, its tree is by slot.

    Raises:
        ValueError: `build` is no function, num_samples below 1, temperature not above 0, a rule of `avoid_proven`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # a thousand arms, of which arm a pays a thousandth of a
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 1000)), zeros, action / 1000, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> build = lambda model: jz.gumbel(model, num_simulations=64, max_considered=32, gumbel_scale=0.0)
    >>> policy = jax.jit(jz.options.with_sampled_actions(build, jz.Model(root, step), num_samples=32))
    >>> out = policy((), jax.random.key(0), jnp.zeros(4))
    >>> out.tree.num_edges, out.action_weights.shape, bool((out.action > 800).all())
    (32, (4, 1000), True)
    """
    (num_samples,) = counts(num_samples=num_samples)
    _check_temperature("with_sampled_actions", temperature)

    def choose(keys: Keys, step: Step) -> tuple[Step, Array, Array]:
        return of_draws(_own(keys, 1), step, num_samples, temperature)

    return in_slots("with_sampled_actions", build, _with_own_keys(model), choose, _unproven(by_number))


def with_continuous_actions(
    build: Callable[[Model], Any], model: Model, sample: Callable[[Keys, Array], Sample]
) -> Any:
    """A policy whose actions are arrays, like torques; K of them are sampled at each node.

    Published values (Hubert et al. 2021): K = 20 and 50 simulations for control tasks.

    Args:
        build: makes the policy, given a model: `lambda model: jz.muzero(model, 50)`.
        model: what the tree is made of. `Step.prior_logits`, `[B, F]`, are the parameters of its policy, which `sample`
            interprets; `Step.legal` is None. `model.step` is given the actions as arrays, `[B, ...]`.
        sample: `(keys, prior_logits) -> Sample`, K actions per game; see `gaussian_sample`.

    Returns:
        `(params, keys, state, tree=None) -> PolicyOutput`: `action` is the array to take, `[B, ...]`,
        `action_weights` and `info.summary` are about `info.actions`, `[B, K, ...]`, the actions sampled at the root.

    Raises:
        ValueError: `build` or `sample` is no function; when called, a sample of other shapes, `Step.legal` given, a
            rule of `avoid_proven`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def say(action):  # best is 0.7; the policy knows nothing of it
    ...     zeros = jnp.zeros(len(action))
    ...     return jz.Step(jnp.zeros((len(action), 2)), zeros, 1 - (action[:, 0] - 0.7) ** 2, zeros), zeros
    >>> root = lambda params, keys, state: say(jnp.zeros((len(state), 1)))
    >>> model = jz.Model(root, lambda params, keys, action, state: say(action))
    >>> build = lambda model: jz.gumbel(model, num_simulations=64, max_considered=32, gumbel_scale=0.0)
    >>> policy = jax.jit(jz.options.with_continuous_actions(build, model, jz.options.gaussian_sample(32)))
    >>> out = policy((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.shape, out.action_weights.shape, bool((abs(out.action - 0.7) < 0.2).all())
    ((4, 1), (4, 32), True)
    """
    if not callable(sample):
        raise ValueError(
            f"with_continuous_actions(sample={sample!r}): give a function (keys, prior_logits) -> Sample, like "
            "gaussian_sample(20)."
        )

    def choose(keys: Keys, step: Step) -> tuple[Step, Array, Array]:
        drawn = sample(_own(keys, 1), step.prior_logits)
        _check_sample(drawn, step)
        action, none = jnp.asarray(drawn.action), jnp.zeros(len(step.prior_logits), jnp.int32)
        good = jnp.isfinite(action)  # non-finite actions are still reported, and never played
        wrong = jnp.any(~jnp.isfinite(step.prior_logits), -1) | jnp.any(~good.reshape(len(good), -1), -1)
        action = jnp.where(good, action, 0)
        first, count = _distinct(action)
        logits = jnp.log(count.astype(drawn.log_prior.dtype))  # log β̂ + log π − log β, up to a constant of the node
        logits += 0.0 if drawn.log_proposal is None else drawn.log_prior - drawn.log_proposal
        logits = jnp.where(wrong[:, None], jnp.nan, logits)
        return step._replace(prior_logits=logits, legal=first), action, none

    def present(out: PolicyOutput, step: Step) -> PolicyOutput:
        actions = slots_of(out.tree, jnp.zeros_like(out.action)).action
        info = SampledInfo(out.info.status, out.info.overflows, out.info.size, out.info.summary, actions)
        return out.replace(action=at_slot(actions, out.action), info=info)

    return in_slots("with_continuous_actions", build, _with_own_keys(model), choose, _unproven(present))


def gaussian_sample(num_samples: int, temperature: float | Float[Array, ""] = 1.0) -> Callable[[Keys, Array], Sample]:
    """K draws from independent normal distributions, of which `prior_logits` are the means, then the log deviations.

    Args:
        num_samples: K.
        temperature: τ of the proposal, β ∝ π^(1/τ), which is √τ times as wide; may be traced.

    Returns:
        `(keys, [B, 2S]) -> Sample`, actions `[B, K, S]`.

    Raises:
        ValueError: num_samples below 1, temperature not above 0; when called, an odd number of parameters.
    """
    (num_samples,) = counts(num_samples=num_samples)
    _check_temperature("gaussian_sample", temperature)

    def sample(keys: Keys, parameters: Array) -> Sample:
        if parameters.ndim != 2 or parameters.shape[1] % 2:
            raise ValueError(
                f"gaussian_sample: Step.prior_logits has shape {parameters.shape}; it must be [B, 2S], S means and "
                "then S log standard deviations."
            )
        mean, log_std = jnp.split(parameters.astype(at_least_float32(parameters.dtype)), 2, -1)
        shape, tau = (num_samples, mean.shape[1]), jnp.asarray(temperature, mean.dtype)
        noise = jax.vmap(lambda key: jax.random.normal(key, shape, mean.dtype))(keys)
        action = mean[:, None] + jnp.exp(log_std)[:, None] * jnp.sqrt(tau) * noise

        def density(scaled: Array, width: Array) -> Array:
            return jnp.sum(-(scaled**2) / 2 - log_std[:, None] - jnp.log(2 * jnp.pi) / 2 - jnp.log(width), -1)

        return Sample(action, density(noise * jnp.sqrt(tau), jnp.ones_like(tau)), density(noise, jnp.sqrt(tau)))

    return sample


def of_draws(
    keys: Keys, step: Step, num_samples: int, temperature: Any
) -> tuple[Step, Int[Array, "B W"], Int[Array, "B"]]:
    """The step by slot: the actions among the draws, in ascending order, with the logits of (β̂/β) π."""
    batch, num_actions = step.prior_logits.shape
    width, clean = min(num_samples, num_actions), checked(step)[0]
    draws = jnp.sort(draw(keys, clean.prior_logits / temperature, num_samples), -1)
    first = jnp.concatenate([jnp.ones((batch, 1), bool), draws[:, 1:] != draws[:, :-1]], -1)
    any_legal = jnp.any(clean.legal, -1, keepdims=True)
    place = jnp.arange(batch)[:, None], jnp.where(any_legal, jnp.cumsum(first, -1) - 1, width)  # of each draw its slot
    action = jnp.full((batch, width), NONE, jnp.int32).at[place].set(draws, mode="drop")
    count = jnp.zeros((batch, width), clean.prior_logits.dtype).at[place].add(1, mode="drop")
    given = jnp.take_along_axis(clean.prior_logits, jnp.maximum(action, 0), 1)
    # log β̂ + log π − log β, up to a constant of the node
    logits = jnp.log(jnp.maximum(count, 1)) + (1 - 1 / temperature) * given
    bad = ~jnp.isfinite(jnp.max(jnp.where(clean.legal, step.prior_logits, -jnp.inf), -1, keepdims=True))
    logits = jnp.where(bad, jnp.nan, logits)  # non-finite numbers of the model are still reported
    dropped = jnp.sum(clean.legal, -1, dtype=jnp.int32) - jnp.sum(count > 0, -1, dtype=jnp.int32)
    return step._replace(prior_logits=logits, legal=count > 0), action.astype(number_type(num_actions)), dropped


def draw(keys: Keys, logits: Float[Array, "B A"], num_samples: int) -> Int[Array, "B K"]:
    """K actions per game with the probabilities softmax(logits), by inverting the sum of the probabilities.

    Probabilities are rounded to multiples of 2^-30: sums of integers are exact, so an action of probability 0 is never
    drawn, and a draw costs log A instead of A.
    """
    share = jnp.where(jnp.isneginf(logits), 0, jax.nn.softmax(logits, -1))
    sums = jnp.cumsum(jnp.round(jnp.where(jnp.isfinite(share), share, 0) * WHOLE).astype(jnp.int32), -1)

    def of_game(key: Array, sums: Array) -> Array:
        at = jax.random.randint(key, (num_samples,), 0, jnp.maximum(sums[-1], 1))
        return jnp.minimum(jnp.searchsorted(sums, at, side="right"), len(sums) - 1)

    return jax.vmap(of_game)(keys, sums).astype(jnp.int32)


def _distinct(action: Float[Array, "B K S"]) -> tuple[Bool[Array, "B K"], Int[Array, "B K"]]:
    """Whether each draw is the first of those that are equal to it; and how many these are."""
    flat = action.reshape(*action.shape[:2], -1)
    same = jnp.all(flat[:, :, None] == flat[:, None], -1)
    return ~jnp.any(jnp.tril(same, -1), -1), jnp.sum(same, -1, dtype=jnp.int32)


def _with_own_keys(model: Model) -> Model:
    """The model with keys other than those that actions are drawn with."""
    if not (hasattr(model, "root") and hasattr(model, "step")):
        return model  # the policy reports what is wrong

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        return model.root(params, _own(keys, 0), state)

    def step(params: Params, keys: Keys, action: Array, state: State) -> tuple[Step, State]:
        return model.step(params, _own(keys, 0), action, state)

    return Model(root, step)


def _own(keys: Keys, which: int) -> Keys:
    return jax.vmap(jax.random.split)(keys)[:, which]


def _unproven(present: Callable[..., PolicyOutput]) -> Callable[..., PolicyOutput]:
    def checked_present(out: PolicyOutput, step: Step) -> PolicyOutput:
        if out.tree.bounds is not None:
            raise ValueError(
                "avoid_proven over sampled actions: if all sampled actions lose, that proves nothing about the others. "
                "Use the rule without avoid_proven, or with_legal_slots with a slot for every legal move."
            )
        return present(out, step)

    return checked_present


def _check_temperature(name: str, temperature: Any) -> None:
    if isinstance(temperature, int | float) and not temperature > 0:
        raise ValueError(f"{name}(temperature={temperature}): use a value above 0; 1 draws from the policy itself.")
    if jnp.ndim(temperature):
        raise ValueError(f"{name}: temperature of shape {jnp.shape(temperature)}; give one number.")


def _check_sample(drawn: Any, step: Step) -> None:
    """Raises a ValueError if this is not what `sample` should return."""
    if step.legal is not None:
        raise ValueError(
            "with_continuous_actions: Step.legal is given, but sampled actions have no numbers for it to refer to. "
            "Return legal=None, and sample legal actions only."
        )
    if not isinstance(drawn, Sample):
        raise ValueError(f"sample returned a {type(drawn).__name__}; it must return a Sample(action, log_prior).")
    shape = jnp.shape(drawn.log_prior)
    good = len(shape) == 2 and shape[0] == len(step.prior_logits) and shape[1] >= 1
    if not good or jnp.shape(drawn.action)[:2] != shape or len(jnp.shape(drawn.action)) < 3:
        raise ValueError(
            f"sample returned actions of shape {jnp.shape(drawn.action)} with log_prior of shape {shape}; they must be "
            f"[{len(step.prior_logits)}, K, ...], each action an array of at least one axis, and "
            f"[{len(step.prior_logits)}, K]."
        )
    if drawn.log_proposal is not None and jnp.shape(drawn.log_proposal) != shape:
        raise ValueError(f"sample returned log_proposal of shape {jnp.shape(drawn.log_proposal)}; it must be {shape}.")
