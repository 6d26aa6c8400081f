"""One step of the optimiser, and the state of learning, for any loss."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from jaxzero.types import Params, in_short

__all__ = ["Learner", "LearnerOfTwoAverages", "learning_rate", "parameter_update", "playing_params"]


class Learner(NamedTuple):
    """The state of learning.

    Attributes:
        params: the network's parameters.
        average: their exponential moving average, which plays and is evaluated.
        opt_state: the optimiser's state.
        steps: minibatches so far.
        skipped: how many of them changed nothing, because the loss or its gradient was not finite.
        in_a_row: how many of the latest minibatches were skipped one after another.
    """

    params: Params
    average: Params
    opt_state: Any
    steps: Int[Array, ""]
    skipped: Int[Array, ""]
    in_a_row: Int[Array, ""]

    __repr__ = in_short


class LearnerOfTwoAverages(NamedTuple):
    """The same with a second, shorter average, which plays; `average` is only evaluated.

    It is a separate record because checkpoints without this average have the fields of `Learner`.

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
    """The update of parameters from gradients, as two functions.

    `begin(params) -> Learner`;
    `apply(learner, gradients, loss, learning_rate) -> (Learner, norm, bad)`: a step of AdamW; the gradient's norm
    before clipping; and 1 where the minibatch was skipped, else 0. The learning rate is traced.

    AdamW (Loshchilov & Hutter 2019, "Decoupled weight decay regularization"): the gradient step and the decay of
    the weights are separate. With plain SGD the decay is that of a penalty of (weight_decay / 2)·‖θ‖², so AlphaZero's
    c·‖θ‖² is `weight_decay = 2·c`. Biases and normalisation scales (fewer than two axes) are not decayed.

    A minibatch changes only the counts if its loss or gradient is not finite, or if it would lead to non-finite
    parameters.

    Args:
        weight_decay: AlphaZero and MuZero: 1e-4 with SGD; with AdamW 1e-4 ... 1e-2.
        average_decay: of the moving average; warmed up as min(decay, (1 + steps) / (10 + steps)).
        playing_decay: of a second, shorter average, which plays, and is warmed up likewise. None: there is no second.
        clip_norm: gradients with a larger norm are scaled down to it.
        direction: transforms gradients before decay and learning rate: Adam's, or `muon()`.

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
        copy = lambda: jax.tree.map(jnp.copy, params)  # separate memory: all are donated to the update
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
    """Linear warm-up over minibatches, then constant, then as 1 / √(their number): no end is assumed.

    Args:
        learn: settings: `learning_rate`, the level; `warmup` and `hold`, in minibatches.
        minibatches: so far.
    """
    return (
        learn.learning_rate
        * min(1.0, (minibatches + 1) / max(learn.warmup, 1))
        * min(1.0, (learn.hold / (minibatches + 1)) ** 0.5)
    )
