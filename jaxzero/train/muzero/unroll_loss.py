"""MuZero's loss: the model unrolled along the actions of a window, compared with what happened."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from jaxzero.train.muzero.targets import Targets
from jaxzero.types import Params

__all__ = [
    "LossWeights",
    "UnrollLosses",
    "compared",
    "mean_over",
    "over_devices",
    "over_what_counts",
    "scale_gradient",
    "summed",
    "time_first",
    "unroll",
    "unroll_loss",
]


class LossWeights(NamedTuple):
    """Factors on the parts of the loss.

    Attributes:
        policy: of the cross-entropy between the search's policy and the network's.
        value: MuZero: 0.25 with reanalyse, else 1.
        reward: 1.
        consistency: of the embedding against that of the true observation (EfficientZero: 2); 0: none.
    """

    policy: float = 1.0
    value: float = 0.25
    reward: float = 1.0
    consistency: float = 0.0


class UnrollLosses(NamedTuple):
    """Means over the windows that count, by step of the unroll; states 0 ... K, rewards and consistency of 1 ... K.

    Attributes:
        policy: cross-entropy minus the target's entropy, KL(target‖network), in nats; it may be negative for continuous
            actions, whose densities may exceed 1.
        value: the head's loss.
        reward: likewise.
        consistency: 1 − cosine; zeros where it has no weight.
        value_error: |decoded value − target|.
        reward_error: |decoded reward − target|.
        outside: share of the value targets, of all states, outside the range of the head.
        spread: mean standard deviation, over windows, of the numbers of the last embedding; 0: all are the same.
        reward_spread: standard deviation of the reward targets.
        reward_said: standard deviation of the decoded rewards; 0: the head predicts a constant.
        chance: of Stochastic MuZero, the `ChanceLosses`; else None.
    """

    policy: Float[Array, "K1"]
    value: Float[Array, "K1"]
    reward: Float[Array, "K"]
    consistency: Float[Array, "K"]
    value_error: Float[Array, "K1"]
    reward_error: Float[Array, "K"]
    outside: Float[Array, ""]
    spread: Float[Array, ""]
    reward_spread: Float[Array, ""]
    reward_said: Float[Array, ""]
    chance: Any = None


def scale_gradient(x: Any, scale: float) -> Any:
    """The same numbers; their gradient is multiplied by `scale`."""
    return jax.tree.map(lambda leaf: scale * leaf + (1 - scale) * jax.lax.stop_gradient(leaf), x)


def unroll(network: Any, params: Params, observation: Array, action: Int[Array, "n K"], into: float) -> tuple[Any, Any]:
    """Embeddings of states 0 ... K `[K + 1, n, ...]`, and the outputs of the reward head of the steps `[K, n, ...]`.

    Args:
        network: a `LearnedNetwork`.
        params: its parameters.
        observation: of state 0, `[n, ...]`.
        action: of the steps.
        into: factor on the gradient into an embedding where a step begins (MuZero: 0.5).
    """
    first = network.represent(params, observation)

    def step(embedding: Any, action: Array) -> tuple[Any, tuple[Any, Array]]:
        following, reward = network.dynamics(params, scale_gradient(embedding, into), action)
        return following, (following, reward)

    _, (rest, reward) = jax.lax.scan(step, first, action.swapaxes(0, 1))
    return jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), first, rest), reward


def unroll_loss(
    network: Any,
    params: Params,
    observation: Array,
    action: Int[Array, "n K"],
    targets: Targets,
    weight: Float[Array, "n"],
    *,
    weights: LossWeights = LossWeights(),
    later: Array | None = None,
    into: float = 0.5,
    axis: str | None = None,
) -> tuple[Float[Array, ""], tuple[UnrollLosses, Float[Array, "n"]]]:
    """The sum over k of policy, value and reward losses, those of unrolled steps over K (Schrittwieser et al. 2020).

    Appendix G there: losses of the K unrolled steps are scaled by 1 / K, and the gradient at the beginning of each
    step of the dynamics by 1 / 2, so that the whole gradient has the same size whatever K is. Policies are learned in
    running states only, values and rewards in absorbing ones, too, and nothing in unknown ones.

    Args:
        network: a `LearnedNetwork`.
        params: its parameters.
        observation: of state 0, `[n, ...]`.
        action: of steps 0 ... K − 1.
        targets: the targets of the network's outputs; no gradient flows into them.
        weight: of each window, see `sequence_replay.sample`.
        weights: of the parts.
        later: observations of states 1 ... K, `[n, K, ...]`, for the consistency loss (Ye et al. 2021, "Mastering Atari
            games with limited data", section 4.1); None: without.
        into: see `unroll`.
        axis: of the mesh, over which the parts of the loss are counted together; None: there is one device only.

    Returns:
        The loss; its parts; and |value − target| of state 0, a priority.

    Example:
        Eight windows of a network that knows nothing: it says 0 for the values, 1, and misses each by 1.

        >>> from jaxzero import nets
        >>> from jaxzero.train.muzero.targets import Targets
        >>> head, key = nets.bounded(), jax.random.key(0)
        >>> network, params = nets.muzero_mlp((4,), 2, value=head, reward=head, embedding=8, width=8, key=key)
        >>> states, steps = jnp.ones((8, 4)), jnp.ones((8, 3))  # K = 3
        >>> targets = Targets(jnp.ones((8, 4, 2)) / 2, states, 0 * steps, states > 0, states > 0)
        >>> given = jnp.ones((8, 4)), jnp.zeros((8, 3), jnp.int32), targets, jnp.ones(8)
        >>> loss, (parts, priority) = jax.jit(lambda params: unroll_loss(network, params, *given))(params)
        >>> float(loss), parts.value_error.tolist(), parts.policy.tolist()  # 0.25 for state 0, and as much for the rest
        (0.5, [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0])
    """
    targets = time_first(targets)
    embedding, reward = unroll(network, params, observation, action, into)
    losses = compared(network, params, embedding, reward, targets, axis)
    losses = losses._replace(
        consistency=_consistency(network, params, embedding, later, targets.running[1:], weights.consistency)
    )
    parts = {name: getattr(weights, name) * getattr(losses, name) for name in LossWeights._fields}
    means = over_what_counts(losses, targets, axis)
    return (weight * summed(parts)).mean(), jax.lax.stop_gradient((means, losses.value_error[0]))


def time_first(targets: Targets) -> Targets:
    """The targets with time first, `[K + 1, n, ...]`, as unrolled; no gradient flows into them."""
    return jax.lax.stop_gradient(jax.tree.map(lambda x: x.swapaxes(0, 1), targets))


def summed(parts: dict[str, Float[Array, "k n"]]) -> Float[Array, "n"]:
    """The sum of parts by window: state 0 has weight 1, and each of the K steps 1 / K."""
    steps = min(len(part) for part in parts.values())
    scale = jnp.concatenate([jnp.ones(1), jnp.full(steps, 1 / max(steps, 1))])[:, None]
    return sum((scale[-len(part) :] * part).sum(0) for part in parts.values() if len(part))


def compared(
    network: Any, params: Params, embedding: Any, reward: Array, targets: Targets, axis: str | None
) -> UnrollLosses:
    """The losses of unrolled states, and of the steps between them, against targets, time first.

    By window; 0 where it does not count; `consistency` is 0.
    """
    steps, n = targets.reward.shape
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), embedding)
    logits, value = jax.tree.map(lambda x: x.reshape(steps + 1, n, *x.shape[1:]), network.predict(params, flat))
    entropy = -jnp.sum(jax.scipy.special.xlogy(targets.policy, targets.policy), -1)
    total, known = over_devices(axis), targets.known
    paid = network.reward.decode(reward)
    last = jax.tree.leaves(embedding)[0][-1]
    return UnrollLosses(
        policy=jnp.where(targets.running, _of_policy(network, logits, targets) - entropy, 0.0),
        value=jnp.where(known, network.value.loss(value, targets.value), 0.0),
        reward=jnp.where(known[1:], network.reward.loss(reward, targets.reward), 0.0),
        consistency=jnp.zeros((steps, n)),
        value_error=jnp.where(known, jnp.abs(network.value.decode(value) - targets.value), 0.0),
        reward_error=jnp.where(known[1:], jnp.abs(paid - targets.reward), 0.0),
        outside=total((network.value.outside(targets.value) & known).sum()) / total(known.sum()),
        spread=_deviation(last, jnp.ones(n, jnp.bool_), total).mean(),
        reward_spread=_deviation(targets.reward.reshape(-1), known[1:].reshape(-1), total),
        reward_said=_deviation(paid.reshape(-1), known[1:].reshape(-1), total),
    )


def _of_policy(network: Any, output: Array, targets: Targets) -> Float[Array, "K1 n"]:
    """The cross-entropy between the search's policy and the network's: over all actions, or over the sampled ones.

    For continuous actions −Σ π'(a) log π(a) over the sample (Hubert et al. 2021, equation 6), with densities.
    """
    if targets.sampled is None:
        chex.assert_equal_shape([output, targets.policy])
        return optax.softmax_cross_entropy(output, targets.policy)
    return -jnp.sum(targets.policy * network.policy.log_prob(output, targets.sampled), -1)


def over_devices(axis: str | None) -> Callable[[Array], Array]:
    """The function that sums over all devices."""
    return lambda x: x if axis is None else jax.lax.psum(jax.lax.stop_gradient(x), axis)


def over_what_counts(losses: UnrollLosses, targets: Targets, axis: str | None) -> UnrollLosses:
    """Means over the windows in which a state counts: the zeros of other windows would lower the losses."""
    running, known = targets.running, targets.known
    counted = dict(policy=running, value=known, reward=known[1:], consistency=running[1:])
    counted |= dict(value_error=known, reward_error=known[1:])
    means = {name: mean_over(getattr(losses, name), which, axis) for name, which in counted.items()}
    return losses._replace(**means)


def mean_over(part: Float[Array, "k n"], counted: Bool[Array, "k n"], axis: str | None) -> Float[Array, "k"]:
    """The mean over the windows that count, by step, of a part that is 0 in all others; 0 where none counts."""
    total = over_devices(axis)
    return total(part.sum(1)) / jnp.maximum(total(counted.sum(1)), 1)


def _deviation(x: Float[Array, "n ..."], counted: Array, total: Callable) -> Float[Array, "..."]:
    """The standard deviation over the counted entries of the first axis; 0 where nothing counts."""
    n, counted = jnp.maximum(total(counted.sum()), 1), counted.reshape(-1, *[1] * (x.ndim - 1))
    mean = total(jnp.where(counted, x, 0).sum(0)) / n
    return jnp.sqrt(total(jnp.where(counted, jnp.square(x - mean), 0).sum(0)) / n)


def _consistency(network: Any, params: Params, embedding: Any, later: Any, running: Array, weight: float) -> Array:
    """1 − cosine between the predictions from unrolled embeddings and the projections of the true ones, `[K, n]`."""
    if later is None or not weight:
        return jnp.zeros(running.shape)
    steps, n = running.shape
    seen = later.swapaxes(0, 1).reshape(steps * n, *later.shape[2:])
    true = jax.lax.stop_gradient(network.project(params, network.represent(params, seen)))
    dreamt = network.foretell(params, jax.tree.map(lambda x: x[1:].reshape(steps * n, *x.shape[2:]), embedding))
    cosine = optax.losses.cosine_similarity(dreamt, true, epsilon=1e-8).reshape(steps, n)
    return jnp.where(running, 1 - cosine, 0.0)
