"""The learner: the AlphaZero loss, and several minibatches as one jitted scan."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from jaxzero.train import replay
from jaxzero.train.parameter_update import Learner, parameter_update
from jaxzero.train.selfplay import Row
from jaxzero.types import Keys, Params

__all__ = ["Learner", "Losses", "augment", "learner", "loss", "score_cross_entropy", "softened", "squared_error"]


class Losses(NamedTuple):
    """Means over the minibatches that were learned from; and the number of those that were not: `skipped`.

    `policy` is the cross-entropy; `target_entropy` its lower bound.
    """

    total: Float[Array, ""]
    policy: Float[Array, ""]
    value: Float[Array, ""]
    target_entropy: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    skipped: Float[Array, ""]


def augment(game: Any, key: chex.PRNGKey, rows: Row) -> Row:
    """Show each row through one of the game's symmetries, drawn uniformly."""
    if len(game.symmetries) < 2:
        return rows

    def one(which, row):
        branches = [
            lambda r, s=s: Row(s.observation(r.observation), r.policy[jnp.array(s.actions)], r.value)
            for s in game.symmetries
        ]
        return jax.lax.switch(which, branches, row)

    which = jax.random.randint(key, (rows.policy.shape[0],), 0, len(game.symmetries))
    return jax.vmap(one)(which, rows)


def softened(policy: Float[Array, "... A"], temperature: float) -> Float[Array, "... A"]:
    """The policy to the power of 1 / temperature, normalised.

    Gumbel's improved policy adds σ(q) to the prior's logits. If a network learned it exactly, each further round of
    search and learning would add it again: of two moves that differ only by noise, one would finally have all the
    weight. With targets softened by a temperature T, the logits converge to σ(q) / (T − 1).

    >>> [round(float(p), 3) for p in softened(jnp.array([0.8, 0.2, 0.0]), 2.0)]
    [0.667, 0.333, 0.0]
    """
    powers = policy ** (1 / temperature)
    return powers / powers.sum(-1, keepdims=True)


def squared_error(target: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """(z − v)², AlphaZero's value loss."""
    return jnp.square(target - value)


def score_cross_entropy(target: Float[Array, "..."], value: Float[Array, "..."]) -> Float[Array, "..."]:
    """KL(s‖q) in nats, with the scores s = (1 + z) / 2 and q = (1 + v) / 2; values in [−1, 1].

    The cross-entropy −s log q − (1 − s) log(1 − q), less the entropy of s: a network that knows z has a loss of 0.

    For v = tanh(x) its gradient in x is v − z, so a network that is sure and wrong learns in proportion to its error,
    until tanh rounds to ±1 (in float32 beyond |x| = 9). The gradient of the squared error has another factor of
    1 − v², which is nearly 0 there.

    >>> [round(float(score_cross_entropy(z, jnp.float32(-0.98))), 3) for z in (-1.0, 0.0, 1.0)]
    [0.01, 1.614, 4.605]
    """
    least = 2.0**-26  # no infinities where a value is rounded to ±1; the value before has a score of 2⁻²⁵
    won, lost = (jnp.maximum((1 + sign * value) / 2, least) for sign in (1, -1))
    score = jnp.clip((1 + target) / 2, 0, 1)  # a mean of values may be rounded beyond ±1
    entropy = jax.scipy.special.entr(score) + jax.scipy.special.entr(1 - score)
    return -score * jnp.log(won) - (1 - score) * jnp.log(lost) - entropy


def loss(
    network: Callable, params: Params, rows: Row, value_weight: float = 1.0, value_loss: Callable = squared_error
) -> tuple[Float[Array, ""], Losses]:
    """(z − v)² + cross-entropy(π, p), means over the rows (Silver et al. 2018, eq. 1 without the L2 term).

    L2 is left to the optimiser, as decoupled weight decay (see `learner`). Illegal actions are not masked. Their
    target is 0, so the network learns not to prefer them.

    Raises:
        ValueError: while tracing, when the network's logits or values have another shape than the rows' targets.
    """
    logits, value = network(params, rows.observation)
    for name, answer, target in (("logits", logits, rows.policy), ("values", value, rows.value)):
        if answer.shape != target.shape:
            raise ValueError(
                f"loss: the network returned {name} of shape {list(answer.shape)}, but the target has shape "
                f"{list(target.shape)}."
            )
    policy_loss = optax.softmax_cross_entropy(logits, rows.policy).mean()
    value_error = value_loss(rows.value, value).mean()
    entropy = -jnp.sum(rows.policy * jnp.log(jnp.maximum(rows.policy, 1e-9)), -1).mean()
    total = policy_loss + value_weight * value_error
    return total, Losses(total, policy_loss, value_error, entropy, jnp.float32(0), jnp.float32(0))


def learner(
    game: Any,
    network: Callable,
    *,
    batch_size: int,
    weight_decay: float = 1e-4,
    value_weight: float = 1.0,
    average_decay: float = 0.99,
    playing_decay: float | None = None,
    clip_norm: float = 1.0,
    policy_temperature: float = 1.0,
    value_loss: Callable = squared_error,
    direction: optax.GradientTransformation = optax.scale_by_adam(),
    devices: tuple[str, int] | None = None,
) -> tuple[Callable[[Params], Learner], Callable[..., tuple[Learner, Losses]]]:
    """A learner, as two functions.

    `begin(params) -> Learner`;
    `update(learner, buffer, keys, learning_rate, minibatches, newest=None) -> (Learner, Losses)`: `minibatches`
    (static) steps on rows sampled uniformly and shown through random symmetries; one key per part of the
    buffer. Learning rate and `newest`, the number of latest rows to sample from (over all devices), are traced.

    For a step, and for minibatches whose loss or gradient is not finite, see `parameter_update`.

    Args:
        game: for its symmetries.
        network: `(params, observation [n, ...]) -> (logits [n, A], value [n])`.
        batch_size: rows per minibatch, over all devices.
        weight_decay: as for `parameter_update`.
        value_weight: factor on the value loss. AlphaZero: 1, with the squared error.
        average_decay: as for `parameter_update`.
        playing_decay: as for `parameter_update`.
        clip_norm: as for `parameter_update`.
        policy_temperature: of the policies that are learned: see `softened`. 1: as the search gave them.
        value_loss: `(target, value) -> loss` of each row: `squared_error`, or `score_cross_entropy`.
        direction: as for `parameter_update`: Adam's, or `muon()`.
        devices: name and size of the mesh axis over which `update` is mapped, each device with its parts of the
            buffer: gradients are averaged over it. None: there is one device only.
    """
    axis, shares = devices or (None, 1)
    if batch_size < 1 or batch_size % shares:
        raise ValueError(f"learner: batch_size={batch_size} on {shares} device(s): give a multiple of {shares}, >= 1.")
    begin, apply = parameter_update(
        weight_decay=weight_decay,
        average_decay=average_decay,
        playing_decay=playing_decay,
        clip_norm=clip_norm,
        direction=direction,
    )

    def step(state: Learner, buffer: replay.Buffer, keys, learning_rate, newest) -> tuple[Learner, Losses]:
        k_rows, k_symmetry = jax.vmap(jax.random.split, out_axes=1)(keys)
        rows = replay.sample(buffer, k_rows, batch_size // shares, None if newest is None else newest // shares)
        rows = jax.vmap(lambda key, part: augment(game, key, part))(k_symmetry, rows)
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        if policy_temperature != 1:
            rows = rows._replace(policy=softened(rows.policy, policy_temperature))
        graded = lambda params: loss(network, params, rows, value_weight, value_loss)
        gradients, losses = jax.grad(graded, has_aux=True)(state.params)
        if shares > 1:
            gradients, losses = jax.lax.pmean((gradients, losses), axis)
        state, norm, bad = apply(state, gradients, losses.total, learning_rate)
        return state, losses._replace(gradient_norm=norm, skipped=bad.astype(jnp.float32))

    def update(
        state: Learner, buffer: replay.Buffer, keys: Keys, learning_rate, minibatches: int, newest=None
    ) -> tuple[Learner, Losses]:
        keys = jax.vmap(lambda k: jax.random.split(k, minibatches), out_axes=1)(keys)
        state, losses = jax.lax.scan(lambda s, k: step(s, buffer, k, learning_rate, newest), state, keys)
        learned = minibatches - losses.skipped.sum()  # if it is 0, the means are NaN
        means = jax.tree.map(lambda x: jnp.where(losses.skipped > 0, 0, x).sum() / learned, losses)
        return state, means._replace(skipped=losses.skipped.sum())

    return begin, update
