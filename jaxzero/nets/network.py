"""A Flax module as a pure function and its parameters; its inputs; rounding to bfloat16."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from jaxzero.games.game import CanonicalForm, Game, shown
from jaxzero.types import Params

__all__ = ["Network", "apart", "as_first_player", "features_of", "form_of", "to_bfloat16"]


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """A module without its parameters, called as a pure function: `net(params, observation) -> (logits, value)`.

    Attributes:
        graph: what Flax needs to put the module together again.
        types: a dictionary like the parameters: the type that each of them is read in.
        canonical: the form in which the module sees the second player's positions; None: as they are.
        input_features: `observations -> planes` that the module sees behind the observation; None: that alone.
    """

    graph: nnx.GraphDef
    types: dict[str, Any]
    canonical: CanonicalForm | None = None
    input_features: Callable | None = None

    def __call__(self, params: Params, observation: Float[Array, "B ..."]) -> tuple[Array, Array]:
        """Logits `[B, A]` and values `[B]` or `[B, P]`."""
        module = _with_features(self.input_features, nnx.merge(self.graph, params))
        return module(observation) if self.canonical is None else as_first_player(self.canonical, module, observation)

    def __repr__(self) -> str:
        """In a line, for a notebook's cell."""
        module = getattr(self.graph.nodes[0], "type", nnx.Module).__name__
        return f"<Network {module}: net(params, observation), params of {len(jax.tree.leaves(self.types))} arrays>"


def apart(
    module: nnx.Module, canonical: CanonicalForm | None = None, input_features: Callable | None = None
) -> tuple[Network, Params]:
    """The network, and its parameters as nested dictionaries of arrays."""
    graph, state = nnx.split(module)
    params = nnx.to_pure_dict(state)
    return Network(graph, _types(module, params), canonical, input_features), params


def form_of(game: Game, canonical: bool) -> CanonicalForm | None:
    """The game's canonical form, if networks shall see positions in it.

    Raises:
        ValueError: the game names none.
    """
    if canonical and game.canonical is None:
        raise ValueError(
            f"canonical=True needs a game that names its canonical form (Game.canonical), as Hex does; {game.id} names "
            "none: leave it out. For a weights file that uses it, give the game the same form: "
            "game._replace(canonical=...)."
        )
    return game.canonical if canonical else None


def features_of(game: Game, input_features: bool) -> tuple[Callable | None, Game]:
    """The game's input features, if networks shall see them; and the game, with their planes in its observation shape.

    Raises:
        ValueError: the game names none.
    """
    if not input_features:
        return None, game
    if game.input_features is None:
        raise ValueError(
            "input_features=True needs a game that names its input features (Game.input_features), as Connect Four and "
            f"Hex do; {game.id} names none: leave it out. For a weights file that uses it, give the game the same "
            "features: game._replace(input_features=...)."
        )
    seen = jax.ShapeDtypeStruct((1, *game.observation_shape), jnp.float32)
    *board, planes = game.observation_shape
    more = jax.eval_shape(game.input_features, seen).shape[-1]
    return game.input_features, game._replace(observation_shape=(*board, planes + more))


def _with_features(features: Callable | None, module: Callable) -> Callable:
    """The module, with the features appended to the planes of each observation."""
    if features is None:
        return module
    return lambda seen: module(jnp.concatenate([seen, features(seen)], -1))


def as_first_player(form: CanonicalForm, module: Callable, observation: Float[Array, "B ..."]) -> tuple[Array, Array]:
    """The module's answers, where it sees each position of the second player as the first player's."""
    seen, second = shown(form, observation)
    logits, value = module(seen)
    back = np.argsort(form.symmetry.actions)
    return jnp.where(second[:, None], logits[:, back], logits), value


def to_bfloat16(net: Network, params: Params) -> Params:
    """The parameters; those that a bfloat16 network reads in bfloat16 are rounded once, not in every call.

    A network keeps its weights in float32, to learn; with `dtype=jnp.bfloat16` it converts them whenever it is called,
    in a search once per simulation. It takes rounded parameters as they are, and gives the same answers, to the bit:
    what it reads in float32, like the heads, is not rounded. Nothing is rounded for a float32 network.

    Args:
        net: made by `nets`, or loaded by `weights.load`.
        params: its parameters; some or all may be rounded already. The learner needs the unrounded ones.

    Returns:
        A dictionary of the same names and shapes.

    Raises:
        ValueError: a network that was not built by `nets`, or parameters of another one.

    Example:
        >>> from jaxzero import games, nets
        >>> net, params = nets.mlp(games.from_pgx("tic_tac_toe"), dtype=jnp.bfloat16, key=jax.random.key(0))
        >>> rounded = to_bfloat16(net, params)
        >>> str(rounded["dense_0"]["kernel"].dtype), str(rounded["policy"]["kernel"].dtype)
        ('bfloat16', 'float32')
    """
    if not isinstance(net, Network):
        raise ValueError(f"to_bfloat16: the network is a {type(net).__name__}: give one that jaxzero.nets has built.")
    fits = jax.tree.structure(params) == jax.tree.structure(net.types)
    if not fits or not all(isinstance(x, jax.Array | np.ndarray) for x in jax.tree.leaves(params)):
        raise ValueError(
            f"to_bfloat16: params are not a dictionary of this network's arrays, {', '.join(net.types)}: give those "
            "that came with it, as in net, params = nets.resnet(...)."
        )
    half = jnp.dtype(jnp.bfloat16)
    return jax.tree.map(lambda x, read: x.astype(half) if read == half else x, params, net.types)


def _types(module: nnx.Module, params: Params) -> dict[str, Any]:
    """The type that each parameter is read in: its layer's `dtype`; where that is None, the parameter's own."""
    own = getattr(module, "dtype", None)
    return {
        name: _types(getattr(module, name), part) if isinstance(part, dict) else jnp.dtype(own or part.dtype)
        for name, part in params.items()
    }
