"""Stochastic MuZero's loss: afterstates and codes of chance, unrolled along a window."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from jaxzero.train.muzero.targets import Targets
from jaxzero.train.muzero.unroll_loss import (
    LossWeights,
    UnrollLosses,
    compared,
    mean_over,
    over_devices,
    over_what_counts,
    scale_gradient,
    summed,
    time_first,
)
from jaxzero.types import Keys, Params

__all__ = ["ChanceLosses", "ChanceWeights", "drawn_code", "nearest_code", "stochastic_loss", "stochastic_unroll"]


UNSEEN = 1  # folded into the keys for codes of steps that the encoder does not see


class ChanceWeights(NamedTuple):
    """Factors on the parts of the loss that are about chance, in addition to `LossWeights`.

    Attributes:
        afterstate: of the values of afterstates; the same kind of loss as for states.
        chance: of the cross-entropy between the predicted codes and those that occurred.
        commitment: of the squared distance between the encoder's output and its code. VQ-VAE has 0.25, for codes of the
            largest entries. Where codes are drawn, it would keep the logits where draws are nearly uniform.
        reconstruction: of half the squared distance between an observation and the network's reconstruction after its
            code, summed over the entries. Without it, codes lose their meaning where rewards and values hardly depend
            on chance, as in 2048: see experiments/muzero/README.md. Where they do, it makes outcomes share codes.
        entropy: of the entropy of the drawn codes, in nats, which is maximised: an encoder that is sure too soon makes
            outcomes share a code.
    """

    afterstate: float = 0.25
    chance: float = 1.0
    commitment: float = 0.0
    reconstruction: float = 0.0
    entropy: float = 0.0


class ChanceLosses(NamedTuple):
    """The losses of chance, beside `UnrollLosses`: means over the steps that were made, by step of the unroll.

    Attributes:
        afterstate: the loss of the values of afterstates, by the value head.
        chance: cross-entropy of the codes, nats.
        commitment: squared distance between the encoder's output and its code.
        reconstruction: half the squared distance between observations and their reconstructions; zeros where it has no
            weight.
        code_counts: the expected count of each code, over all steps.
        code_entropy: mean entropy of a step's code under the encoder's probabilities, nats; 0 where the code is that of
            the largest entry. An uninformative encoder draws all codes equally often; this number reveals it.
    """

    afterstate: Float[Array, "K"]
    chance: Float[Array, "K"]
    commitment: Float[Array, "K"]
    reconstruction: Float[Array, "K"]
    code_counts: Float[Array, "C"]
    code_entropy: Float[Array, ""]


class Unrolled(NamedTuple):
    """The network's outputs along a window, time first.

    Attributes:
        embedding: of states 0 ... K.
        reward: outputs of the steps.
        chances: logits of the codes, at the afterstates.
        worth: value outputs of the afterstates.
        encoded: the encoder's outputs for the steps.
        code: the codes of the steps.
    """

    embedding: Any
    reward: Array
    chances: Float[Array, "K n C"]
    worth: Array
    encoded: Float[Array, "K n C"]
    code: Float[Array, "K n C"]


def nearest_code(encoded: Float[Array, "... C"]) -> Float[Array, "... C"]:
    """The one-hot vector of the largest entry; its gradient goes straight through to the entries.

    VQ-VAE's straight-through estimator (van den Oord et al. 2017, section 3.2) with the unit vectors as its codebook.

    >>> nearest_code(jnp.array([0.1, 0.7, 0.2])).tolist()
    [0.0, 1.0, 0.0]
    >>> jax.grad(lambda x: (nearest_code(x) * jnp.array([1.0, 2.0, 3.0])).sum())(jnp.array([0.1, 0.7, 0.2])).tolist()
    [1.0, 2.0, 3.0]
    """
    hard = jax.nn.one_hot(jnp.argmax(encoded, -1), encoded.shape[-1], dtype=encoded.dtype)
    return hard + (encoded - jax.lax.stop_gradient(encoded))  # the bracket is 0: the code stays exact


def drawn_code(encoded: Float[Array, "... C"], noise: Float[Array, "... C"]) -> Float[Array, "... C"]:
    """A one-hot vector, drawn with the logits `encoded`; its gradient is the softmax's.

    The straight-through Gumbel-softmax (Jang, Gu and Poole 2017, "Categorical Reparameterization with Gumbel-Softmax",
    section 2.2; temperature 1). Draws try codes for outcomes that the largest entry never would. Without draws,
    outcomes that share a code at first go on sharing it: see experiments/muzero/README.md.

    Args:
        encoded: logits.
        noise: draws of the standard Gumbel distribution.

    >>> drawn_code(jnp.array([0.1, 0.7, 0.2]), jnp.array([2.0, 0.0, 1.0])).tolist()
    [1.0, 0.0, 0.0]
    """
    soft = jax.nn.softmax(encoded + noise)
    hard = jax.nn.one_hot(jnp.argmax(encoded + noise, -1), encoded.shape[-1], dtype=encoded.dtype)
    return hard + (soft - jax.lax.stop_gradient(soft))


def _gumbel(keys: Keys, like: Float[Array, "K n C"]) -> Float[Array, "K n C"]:
    """Draws of the standard Gumbel distribution, by each part's key."""
    steps, n, codes = like.shape
    draw = lambda key: jax.random.gumbel(key, (steps, n // len(keys), codes), like.dtype)
    return jax.vmap(draw, out_axes=1)(keys).reshape(like.shape)


def stochastic_unroll(
    network: Any,
    params: Params,
    seen: Array,
    action: Int[Array, "n K"],
    real: Bool[Array, "K n"],
    into: float = 0.5,
    keys: Keys | None = None,
) -> Unrolled:
    """Unrolls the network along the actions of a window, and along the codes of what chance did there.

    Args:
        network: a `StochasticNetwork`.
        params: its parameters.
        seen: observations of states 0 ... K, `[n, K + 1, ...]`.
        action: of the steps.
        real: whether both states of a step belong to one episode. Otherwise the encoder would see nonsense: for the
            step that ends an episode, and after it, codes come from the network's prediction, drawn if there are
            `keys`. So every code learns to predict the end as often as it comes. With the most likely code alone, it
            would be predicted too rarely.
        into: factor on the gradient into an embedding where a step begins.
        keys: for draws of the codes, one for each part of the n windows; None: the codes of the largest entries.
    """
    steps, n = real.shape
    time = seen.swapaxes(0, 1)
    pairs = lambda x: x.reshape(steps * n, *x.shape[2:])
    encoded = network.encode(params, pairs(time[:-1]), pairs(time[1:])).reshape(steps, n, -1)
    if keys is None:
        code, noise = nearest_code(encoded), jnp.zeros_like(encoded)
    else:
        unseen = jax.vmap(lambda key: jax.random.fold_in(key, UNSEEN))(keys)
        code, noise = drawn_code(encoded, _gumbel(keys, encoded)), _gumbel(unseen, encoded)
    first = network.represent(params, time[0])

    def step(embedding: Any, given: tuple) -> tuple[Any, tuple]:
        action, code, real, noise = given
        after = network.afterstate(params, scale_gradient(embedding, into), action)
        chances, worth = network.foresee(params, after)
        foreseen = jax.nn.one_hot(jnp.argmax(chances + noise, -1), code.shape[-1])
        code = jnp.where(real[:, None], code, foreseen)
        following, reward = network.dynamics(params, after, code)
        return following, (following, reward, chances, worth)

    _, (rest, reward, chances, worth) = jax.lax.scan(step, first, (action.T, code, real, noise))
    embedding = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y]), first, rest)
    return Unrolled(embedding, reward, chances, worth, encoded, code)


def stochastic_loss(
    network: Any,
    params: Params,
    seen: Array,
    action: Int[Array, "n K"],
    targets: Targets,
    weight: Float[Array, "n"],
    *,
    weights: LossWeights = LossWeights(),
    chance_weights: ChanceWeights = ChanceWeights(),
    into: float = 0.5,
    keys: Keys | None = None,
    axis: str | None = None,
) -> tuple[Float[Array, ""], tuple[UnrollLosses, Float[Array, "n"]]]:
    """MuZero's loss, and five parts of chance (Antonoglou et al. 2022, section 4, "Chance outcomes" and "Training").

    The value of an afterstate learns the return from the state before it, where the action was the policy's. The logits
    of the codes learn the code that occurred. The encoder is pulled towards its code. The other losses make the codes
    useful: their gradients reach the encoder through the code, which is that of the largest entry, as published, or
    drawn, see `drawn_code`. The fourth part is not published for Stochastic MuZero: observations are reconstructed, as
    in the VQ-VAE (van den Oord et al. 2017, equation 3). What an afterstate leaves open in the next observation is what
    chance did, so this loss asks for it directly; values and policies of 2048 hardly depend on a single tile.
    Nor is the fifth part published, the entropy of drawn codes.

    Args:
        network: a `StochasticNetwork`.
        params: its parameters.
        seen: observations of states 0 ... K, `[n, K + 1, ...]`.
        action: of steps 0 ... K − 1.
        targets: the targets of the network's outputs.
        weight: of each window.
        weights: of MuZero's parts; there is no consistency loss.
        chance_weights: of the parts of chance.
        into: see `stochastic_unroll`.
        keys: likewise.
        axis: of the mesh; None: there is one device only.

    Returns:
        The loss; its parts; and |value − target| of state 0, a priority.
    """
    targets = time_first(targets)
    real = targets.running[:-1] & targets.running[1:]
    told = stochastic_unroll(network, params, seen, action, real, into, keys)
    losses = compared(network, params, told.embedding, told.reward, targets, axis)
    code, taken = jax.lax.stop_gradient(told.code), targets.running[:-1] & targets.known[1:]
    if targets.random is not None:
        taken = taken & ~targets.random
    worth = network.value.loss(told.worth, targets.value[:-1])
    apart = jnp.sum(jnp.square(told.encoded - code), -1)
    missed = _missed(network, params, told.embedding, seen) if chance_weights.reconstruction else jnp.zeros(real.shape)
    of_chance = {
        "afterstate": jnp.where(taken, worth, 0.0),
        "chance": jnp.where(real, optax.softmax_cross_entropy(told.chances, code), 0.0),
        "commitment": jnp.where(real, apart, 0.0),
        "reconstruction": jnp.where(real, missed, 0.0),
    }
    parts = {name: getattr(weights, name) * getattr(losses, name) for name in ("policy", "value", "reward")}
    parts |= {name: getattr(chance_weights, name) * part for name, part in of_chance.items()}
    drawn = keys is not None
    chances = jax.nn.softmax(told.encoded) if drawn else code
    entropy = -(chances * jax.nn.log_softmax(told.encoded)).sum(-1) if drawn else jnp.zeros(real.shape)
    parts["entropy"] = -chance_weights.entropy * jnp.where(real, entropy, 0.0)
    total = over_devices(axis)
    mean_of_all = lambda x: total(jnp.where(real, x, 0.0).sum()) / jnp.maximum(total(real.sum()), 1)
    chance = ChanceLosses(
        **{name: mean_over(part, taken if name == "afterstate" else real, axis) for name, part in of_chance.items()},
        code_counts=total(jnp.where(real[..., None], chances, 0.0).sum((0, 1))),
        code_entropy=mean_of_all(entropy),
    )
    means = over_what_counts(losses, targets, axis)._replace(chance=chance)
    return (weight * summed(parts)).mean(), jax.lax.stop_gradient((means, losses.value_error[0]))


def _missed(network: Any, params: Params, embedding: Any, seen: Array) -> Float[Array, "K n"]:
    """Half the squared distance between observations 1 ... K and their reconstructions from embeddings."""
    later = seen.swapaxes(0, 1)[1:]
    said = network.reconstruct(params, jax.tree.map(lambda x: x[1:].reshape(-1, *x.shape[2:]), embedding))
    apart = said.reshape(later.shape) - later.astype(said.dtype)
    return 0.5 * jnp.square(apart).reshape(*later.shape[:2], -1).sum(-1)
