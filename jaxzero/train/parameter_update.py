"""One step of the optimiser, and what learning carries along: whatever the gradients are of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from jaxzero.types import Params, in_short

__all__ = ["Learner", "LearnerOfTwoAverages", "learning_rate", "parameter_update", "playing_params"]


class Learner(NamedTuple):
    """What learning carries along.

    Attributes:
        params: the network's parameters.
        average: their exponential moving average: what plays and is evaluated.
        opt_state: the optimiser's state.
        steps: minibatches so far.
        skipped: of those, the ones that changed nothing, because the loss or its gradient was not finite.
        in_a_row: the latest of them that were skipped one after another.
    """

    params: Params
    average: Params
    opt_state: Any
    steps: Int[Array, ""]
    skipped: Int[Array, ""]
    in_a_row: Int[Array, ""]

    __repr__ = in_short


class LearnerOfTwoAverages(NamedTuple):
    """The same, with a shorter average that plays: `average` is only evaluated.

    It is a record of its own because checkpoints without one have the fields of `Learner`.

    Attributes:
        recent: the shorter average; the others as for `Learner`.
    """

    params: Params
    average: Params
    opt_state: Any
    steps: Int[Array, ""]
    skipped: Int[Array, ""]
    in_a_row: Int[Array, ""]
    recent: Params

    __repr__ = in_short


def playing_params(learner: Learner | LearnerOfTwoAverages) -> Params:
    """The parameters that play."""
    return learner.recent if isinstance(learner, LearnerOfTwoAverages) else learner.average


def parameter_update(
    *,
    weight_decay: float = 1e-4,
    average_decay: float = 0.99,
    playing_decay: float | None = None,
    clip_norm: float = 1.0,
    direction: optax.GradientTransformation = optax.scale_by_adam(),
) -> tuple[Callable[[Params], Learner], Callable[..., tuple[Learner, Float[Array, ""], Int[Array, ""]]]]:
    """How gradients change parameters, as two functions.

    `begin(params) -> Learner`;
    `apply(learner, gradients, loss, learning_rate) -> (Learner, norm, bad)`: a step of AdamW; the gradient's length
    before it was shortened; and 1 where the minibatch was skipped, else 0. The learning rate is traced.

    AdamW (Loshchilov & Hutter 2019, "Decoupled weight decay regularization"): the gradient step and the decay of
    the weights are apart. With plain SGD the decay is that of a penalty of (weight_decay / 2)·‖θ‖², so AlphaZero's
    c·‖θ‖² is `weight_decay = 2·c`. Biases and normalisation scales (fewer than two axes) are not decayed.

    A minibatch whose loss or gradient is not finite, or that would lead to parameters that are not, changes nothing but
    the counts.

    Args:
        weight_decay: AlphaZero and MuZero: 1e-4 with SGD; with AdamW 1e-4 ... 1e-2.
        average_decay: of the moving average; warmed up as min(decay, (1 + steps) / (10 + steps)).
        playing_decay: of a second, shorter one, which plays, and is warmed up likewise. None: there is one.
        clip_norm: gradients longer than this are shortened to it.
        direction: what becomes of gradients before decay and learning rate: Adam's, or `muon()`.

    Raises:
        ValueError: the average that plays is the longer one.

    Example:
        >>> begin, apply = parameter_update(weight_decay=0.0)
        >>> start = begin({"bias": jnp.ones(3)})
        >>> after, norm, bad = apply(start, {"bias": jnp.float32([2.0, 0.0, -2.0])}, jnp.float32(0.5), 0.1)
        >>> [f"{x:.1f}" for x in after.params["bias"]], int(after.steps), int(bad)
        (['0.9', '1.0', '1.1'], 1, 0)
    """
    if playing_decay is not None and not 0 <= playing_decay <= average_decay:
        raise ValueError(
            f"playing_decay={playing_decay} must be in [0, average_decay={average_decay}], for a shorter average. Use "
            "None for one average."
        )
    decayed = lambda params: jax.tree.map(lambda x: x.ndim > 1, params)
    optimiser = optax.chain(
        optax.clip_by_global_norm(clip_norm), direction, optax.add_decayed_weights(weight_decay, decayed)
    )

    def begin(params: Params) -> Learner:
        copy = lambda: jax.tree.map(jnp.copy, params)  # its own memory: all are donated to the update
        learner = Learner(params, copy(), optimiser.init(params), *jnp.zeros(3, jnp.int32))
        return learner if playing_decay is None else LearnerOfTwoAverages(*learner, copy())

    def apply(
        state: Learner, gradients: Params, loss: Float[Array, ""], learning_rate
    ) -> tuple[Learner, Float[Array, ""], Int[Array, ""]]:
        norm = optax.tree.norm(gradients)
        updates, opt_state = optimiser.update(gradients, state.opt_state, state.params)
        params = jax.tree.map(lambda p, u: p - learning_rate * u, state.params, updates)
        good = jnp.isfinite(loss) & jnp.isfinite(norm) & jnp.isfinite(optax.tree.norm(params))

        def moved(average: Params, decay: float) -> Params:
            decay = jnp.minimum(decay, (1 + state.steps) / (10 + state.steps))
            return jax.tree.map(lambda a, p: decay * a + (1 - decay) * p, average, params)

        new = dict(params=params, average=moved(state.average, average_decay), opt_state=opt_state)
        if playing_decay is not None:
            new["recent"] = moved(state.recent, playing_decay)
        old = {name: getattr(state, name) for name in new}
        kept = jax.tree.map(lambda new, old: jnp.where(good, new, old), new, old)
        bad = (~good).astype(jnp.int32)
        counts = dict(steps=state.steps + 1, skipped=state.skipped + bad, in_a_row=(state.in_a_row + 1) * bad)
        return state._replace(**kept, **counts), norm, bad

    return begin, apply


def learning_rate(learn: Any, minibatches: int) -> float:
    """Linear warm-up over minibatches, then level, then as one over the root of their number: no end is assumed.

    Args:
        learn: settings: `learning_rate`, the level; `warmup` and `hold`, in minibatches.
        minibatches: so far.
    """
    return (
        learn.learning_rate
        * min(1.0, (minibatches + 1) / max(learn.warmup, 1))
        * min(1.0, (learn.hold / (minibatches + 1)) ** 0.5)
    )
