"""The speed of bfloat16 on this device: networks evaluate and learn in it, compared with the same ones in float32.

    .venv/bin/python experiments/bfloat16.py                    # about five minutes
    .venv/bin/python experiments/bfloat16.py --quick            # in miniature, to check that it works
    .venv/bin/python experiments/bfloat16.py --games othello --rows 256

Times the evaluation of a batch of positions, the gradient of a minibatch, and a whole search, each in both types in
turn in one process. Prints a table, and writes a new file `experiments/results/bfloat16/<device>-<date>.json`.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from bench.measure import circumstances, compiled, interleaved, markdown, save, sentence

import jaxzero as jz
from jaxzero import games, models, nets
from jaxzero.train import learner
from jaxzero.train.selfplay import Row

HERE = pathlib.Path(__file__).parent
NETWORKS = {
    "windows 256 256": nets.windows,
    "windows 512 256": lambda game, **given: nets.windows(game, hidden=(512, 256), **given),
    "mlp 256 256": lambda game, **given: nets.mlp(game, (256, 256), **given),
    "resnet 6 64": lambda game, **given: nets.resnet(game, channels=64, blocks=6, **given),
}


@dataclasses.dataclass(frozen=True)
class Config:
    quick: bool = False
    """Everything in miniature."""
    games: tuple[str, ...] = ("connect_four", "othello")
    """Games whose boards the networks get."""
    networks: tuple[str, ...] = tuple(NETWORKS)
    """Which networks."""
    rows: int = 128
    """Positions evaluated at once, and games of the search."""
    minibatch: int = 1024
    """Rows of the gradient's minibatch."""
    simulations: int = 16
    """Simulations of the search."""
    seconds: float = 3.0
    """Seconds for each figure, both types together."""
    output: pathlib.Path = HERE / "results" / "bfloat16"
    """Folder for the JSON file."""


QUICK = Config(
    quick=True, games=("tic_tac_toe",), networks=("mlp 256 256",), rows=2, minibatch=2, simulations=2, seconds=0.01,
    output=HERE.parent / "runs" / "quick",
)  # fmt: skip


def programs(game: games.Game, build: Callable, dtype: Any, config: Config) -> dict[str, Callable[[], Any]]:
    """The compiled programs to measure."""
    net, params = build(game, key=jax.random.key(0), dtype=dtype)
    ready = nets.to_bfloat16(net, params)  # only to play: the learner keeps float32 parameters
    keys = jax.random.split(jax.random.key(1), config.rows)
    states = jax.jit(jax.vmap(game.init))(keys)
    seen = jax.random.bernoulli(keys[0], 0.3, (config.minibatch, *game.observation_shape)).astype(jnp.float32)
    rows = Row(seen, jnp.full((config.minibatch, game.num_actions), 1 / game.num_actions), jnp.zeros(config.minibatch))
    search = jz.gumbel(models.perfect(game, net), config.simulations, max_considered=min(16, config.simulations))
    return {
        f"answers, {config.rows} at once": compiled(net, ready, seen[: config.rows]),
        f"gradient of {config.minibatch} rows": compiled(
            jax.grad(lambda params, rows: learner.loss(net, params, rows)[0]), params, rows
        ),
        f"search of {config.rows} games": compiled(lambda p, k, s: search(p, k, s).action, ready, keys, states),
    }


def measured(boards: list[games.Game], config: Config) -> list[dict[str, Any]]:
    """A row for each game, network and program: seconds in both types."""
    rows = []
    for game in boards:
        for network in config.networks:
            print(f"Compiling {network} for {game.id}", flush=True)
            plain, half = (programs(game, NETWORKS[network], dtype, config) for dtype in (None, jnp.bfloat16))
            for what in plain:
                times = interleaved({"float32": plain[what], "bfloat16": half[what]}, config.seconds, least=5, most=400)
                seconds = {dtype: timing.seconds for dtype, timing in times.items()}
                rows.append({"game": game.id, "network": network, "what": what, "seconds": seconds})
    return rows


def cells(row: dict[str, Any]) -> list[Any]:
    """A row of the table."""
    plain, half = row["seconds"]["float32"], row["seconds"]["bfloat16"]
    return [row["game"], row["network"], row["what"], 1e3 * plain, 1e3 * half, plain / half]


def main() -> None:
    """Measures, prints and saves."""
    default = QUICK if "--quick" in sys.argv else Config()
    config = tyro.cli(Config, default=default, description=__doc__)
    if unknown := [name for name in config.networks if name not in NETWORKS]:
        sys.exit(f"--networks {', '.join(unknown)}: use {', '.join(NETWORKS)}.")
    for name in ("rows", "minibatch", "simulations"):
        if getattr(config, name) < 1:
            sys.exit(f"--{name} {getattr(config, name)}: at least 1.")
    try:
        boards = [games.by_name(name) for name in config.games]
    except ValueError as error:
        sys.exit(f"--games: {error}")
    results = circumstances()
    print(sentence(results))
    rows = measured(boards, config)
    head = ["game", "network", "what", "float32, ms", "bfloat16, ms", "times as fast"]
    print(markdown(head, [cells(row) for row in rows]))
    settings = {name: x for name, x in dataclasses.asdict(config).items() if name != "output"}
    print(f"Written to {save(results | {'settings': settings, 'rows': rows}, config.output)}")


if __name__ == "__main__":
    main()
