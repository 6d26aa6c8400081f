"""Networks and matches for parts of `options.py`: trained networks, counted calls, Elo."""

import math
import pathlib
from collections.abc import Callable
from typing import Any

import jax

from jaxzero import games, nets
from jaxzero.cli.playing.play import resolved, rules
from jaxzero.cli.playing.play_settings import SIZE, Player
from jaxzero.nets import weights
from jaxzero.play import arena

__all__ = ["Counter", "elo", "match", "resnet", "trained"]


def trained(folder: pathlib.Path) -> tuple[games.Game, Callable, Any]:
    """Game, network and parameters of a run of `jaxzero train`.

    Raises:
        ValueError: weights that cannot be read, or of a game that is not for two.
        OSError: likewise.
    """
    player = resolved(Player(weights=str(folder)))
    game = rules(player, player.size or SIZE, player.komi or 0.0)
    if game.num_players != 2:
        raise ValueError(f"{game.id} has {game.num_players} players, but the matches are of two: give another run")
    return game, *weights.load(folder / "weights.safetensors", game)[:2]


def resnet(size: str, name: str = "connect_four") -> tuple[games.Game, Callable, Any]:
    """An untrained residual network, its size as channels x blocks, for a game that pgx knows."""
    game, (channels, blocks) = games.from_pgx(name), map(int, size.split("x"))
    return game, *nets.resnet(game, channels=channels, blocks=blocks, key=jax.random.key(0))


class Counter:
    """Counts the calls of a network that a compiled program makes."""

    def __init__(self) -> None:
        self.calls = 0

    def counted(self, net: Callable) -> Callable:
        def network(params: Any, seen: Any) -> Any:
            jax.debug.callback(self._add)
            return net(params, seen)

        return network

    def _add(self) -> None:
        self.calls += 1

    def during(self, run: Callable, *args: Any) -> tuple[Any, int]:
        """The result of a call of a program, and the number of network calls that it made."""
        before = self.calls
        out = jax.block_until_ready(run(*args))
        jax.effects_barrier()
        return out, self.calls - before


def elo(share: float) -> float | None:
    """The Elo difference that corresponds to a share of the points; None: infinite."""
    return 400 * math.log10(share / (1 - share)) if 0 < share < 1 else None


def match(game: games.Game, ours: Callable, other: Callable, params: Any, config: Any) -> dict[str, Any]:
    """Games between two policies of one network, in pairs with colours swapped."""
    keys = jax.random.split(jax.random.key(1), config.games // 2)
    play = lambda params: arena.play(game, (ours, other), (params, params), keys, config.opening_plies)
    score = jax.jit(play)(params)
    share, (low, high) = arena.share(score), arena.interval(score)
    points = {"share": share, "interval": [low, high], "score": [int(x) for x in score]}
    return points | {"elo": elo(share), "elo_interval": [elo(low), elo(high)]}


def shown(result: dict[str, Any] | None) -> str:
    """A result of `match`, for a table."""
    if result is None:
        return ""
    number = lambda x: "?" if x is None else f"{x:+.0f}"
    low, high = result["elo_interval"]
    wins, draws, losses, _ = result["score"]
    return f"{number(result['elo'])} ({number(low)} to {number(high)}), +{wins} ={draws} -{losses}"
