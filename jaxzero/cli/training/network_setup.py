"""The network that the settings ask for, and its inputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero import games, nets
from jaxzero.cli.training.settings import GAME_INPUTS, Network
from jaxzero.nets import weights
from jaxzero.nets.files.network_arguments import described, shapes_of
from jaxzero.nets.files.safetensors_file import SIZE

__all__ = ["about", "can_be_saved", "fits_a_file", "inputs", "network", "tells_parity"]


def about(net: Network, game: games.Game) -> dict[str, Any]:
    """The network's description for a weights file. Windows fit the board; games without a board get an MLP."""
    shown = {name: True for name in GAME_INPUTS if getattr(net, name) and getattr(game, name) is not None}
    if net.kind == "mlp" or len(game.observation_shape) != 3:
        return {"kind": "mlp", "hidden": list(net.hidden)} | shown
    sizes = {
        "windows": {
            "window": min(net.window, *game.observation_shape[:2]),
            "channels": net.channels,
            "hidden": list(net.hidden),
        },
        "resnet": {"channels": net.channels, "blocks": net.blocks},
    }
    return {"kind": net.kind} | sizes[net.kind] | ({"stone_parity": True} if net.stone_parity else {}) | shown


def can_be_saved(net: Network, game: games.Game) -> None:
    """Raises a ValueError if a weights file could not hold this network, before a run's first save does."""
    try:
        kind, given = described(about(net, game), weights.KINDS)
        _, params = shapes_of(lambda: kind.build(game, **given, key=jax.random.key(0)), game.id)
    except ValueError as error:
        raise ValueError(f"--network: {error}") from error
    fits_a_file(params)


def fits_a_file(params: Any) -> None:
    """Raises a ValueError if the parameters, or their shapes, are more than a weights file holds."""
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(params))
    if size > SIZE:
        raise ValueError(
            f"--network: {size:,} bytes of weights, and a file holds at most {SIZE:,}: use fewer units or channels."
        )


def tells_parity(net: Network, game: games.Game) -> bool:
    """Whether the network can get the parity of stones: only with two planes, which are taken for the players' stones.

    With more planes, some may say whose turn it is, and nobody says which of them are stones.
    """
    shape = game.observation_shape
    return net.kind != "mlp" and game.num_players == 2 and len(shape) == 3 and shape[-1] == 2


def inputs(net: Network, game: games.Game) -> set[str]:
    """Which of `settings.INPUTS` the networks of this game can have."""
    found = {name for name in GAME_INPUTS if getattr(game, name) is not None}
    return found | ({"stone_parity"} if tells_parity(net, game) else set())


def network(net: Network, game: games.Game, key: jax.Array, dtype: str | None = None) -> tuple[Callable, Any]:
    """The network and its first parameters, which do not depend on the type that it computes in."""
    given = about(net, game)
    builder = {"mlp": nets.mlp, "windows": nets.windows, "resnet": nets.resnet}[given.pop("kind")]
    return builder(game, **given, key=key, dtype=None if dtype is None else jnp.dtype(dtype))
