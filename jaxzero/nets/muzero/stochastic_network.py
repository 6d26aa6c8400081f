"""The StochasticNetwork record: Stochastic MuZero's functions, and the codes of chance."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int

from jaxzero.nets.muzero.learned_network import for_search
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.types import Params, State, in_short

__all__ = ["StochasticNetwork", "for_stochastic_search"]


class StochasticNetwork(NamedTuple):
    """Stochastic MuZero's functions (Antonoglou et al. 2022, section 4), batched; outputs of heads are not decoded yet.

    Attributes:
        codes: C, how many outcomes chance has.
        represent: h, `(params, observation [B, ...]) -> embedding`, normalised.
        predict: f, `(params, embedding) -> (logits [B, A], value output [B, ...])`.
        afterstate: φ, `(params, embedding, action [B]) -> embedding` of the afterstate, of the same shapes.
        foresee: ψ, `(params, afterstate) -> (logits of the codes [B, C], value output [B, ...])`.
        dynamics: g, `(params, afterstate, code [B, C]) -> (embedding, reward output [B, ...])`; a code is one-hot.
        encode: e, `(params, observation before [B, ...], observation after) -> [B, C]`: what chance has done, as a
            nearly one-hot vector. It sees both, because the later one alone does not show a new tile of 2048.
        reconstruct: `(params, embedding) -> observation [B, ...]`; only the loss uses it.
        value: what the value outputs mean.
        reward: what the reward output means.
    """

    codes: int
    represent: Callable[[Params, Array], State]
    predict: Callable[[Params, State], tuple[Float[Array, "B A"], Array]]
    afterstate: Callable[[Params, State, Int[Array, "B"]], State]
    foresee: Callable[[Params, State], tuple[Float[Array, "B C"], Array]]
    dynamics: Callable[[Params, State, Float[Array, "B C"]], tuple[State, Array]]
    encode: Callable[[Params, Array, Array], Float[Array, "B C"]]
    reconstruct: Callable[[Params, State], Array]
    value: ScalarHead
    reward: ScalarHead

    __repr__ = in_short


def for_stochastic_search(network: StochasticNetwork, discount: Any) -> tuple[Callable, Callable, Callable, Callable]:
    """The functions as `models.stochastic` takes them: represent, predict, afterstate, dynamics, with numbers.

    Args:
        network: the functions.
        discount: γ of one player; −γ where two players alternate.
    """
    represent, predict, by_code = for_search(network, discount)

    def afterstate(params: Params, embedding: State, action: Int[Array, "B"]) -> tuple[State, Array, Array]:
        after = network.afterstate(params, embedding, action)
        chances, output = network.foresee(params, after)
        return after, chances, network.value.decode(output)

    def dynamics(params: Params, after: State, code: Int[Array, "B"]) -> tuple[State, Array, Array]:
        return by_code(params, after, jax.nn.one_hot(code, network.codes))

    return represent, predict, afterstate, dynamics
