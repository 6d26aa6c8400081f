"""Rollout search: its speed compared with OpenSpiel's, and its strength.

    .venv/bin/python experiments/rollouts.py                    # everything: some 20 minutes on two cores
    .venv/bin/python experiments/rollouts.py --quick            # in miniature, to check that it works
    .venv/bin/python experiments/rollouts.py --parts speed --batches 1 64 --rollouts 1 16

    speed        playouts per second within a search, and by OpenSpiel's C++ MCTSBot with its RandomRolloutEvaluator, in
                 turn in one process; from the first position of tic-tac-toe, Connect Four and 9×9 Go
    go           9×9 Go, 200 playouts per move, against random play, both colours: expected 20 to 0
    tic_tac_toe  500 games against a player that never errs, both colours: expected without a loss

OpenSpiel's Go plays uniformly random moves, with passes and filled eyes, to the end or 162 moves; ours leaves eyes
alone. bench/README.md has the expected
results. Prints tables, and writes a new file `experiments/results/<device>-<date>.json`.
"""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable
from typing import Any, Literal

import tyro

HERE = pathlib.Path(__file__).parent
Part = Literal["speed", "go", "tic_tac_toe"]


@dataclasses.dataclass(frozen=True)
class Config:
    parts: tuple[Part, ...] = ("speed", "go", "tic_tac_toe")
    """What to do."""
    quick: bool = False
    """Everything in miniature; settings given explicitly still apply."""
    games: tuple[Literal["tic_tac_toe", "connect_four", "go"], ...] = ("tic_tac_toe", "connect_four", "go")
    """speed: the games."""
    batches: tuple[int, ...] = (1, 64, 1024)
    """speed: games searched at once."""
    rollouts: tuple[int, ...] = (1, 16)
    """speed: playouts per leaf; more than the first only with one game."""
    simulations: int = 200
    """speed: simulations per search; a tenth of it in Go with many games."""
    seconds: float = 10.0
    """speed: seconds for a row's runs, if three of each fit."""
    go_games: int = 20
    """go: games, an even number."""
    go_simulations: int = 200
    """go: simulations per move, of one playout each."""
    opponents: int = 500
    """tic_tac_toe: games, an even number."""
    tic_tac_toe_simulations: int = 1000
    """tic_tac_toe: simulations per move, of 4 playouts each."""
    output: pathlib.Path = HERE / "results"
    """Folder for the JSON file."""


QUICK = Config(
    quick=True, games=("tic_tac_toe",), batches=(2,), rollouts=(1,), simulations=20, seconds=0.1, go_games=2,
    go_simulations=8, opponents=4, tic_tac_toe_simulations=100, output=HERE.parent / "runs" / "quick",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> Config:
    arguments = sys.argv[1:] if arguments is None else arguments
    default = QUICK if "--quick" in arguments else Config()
    config = tyro.cli(Config, default=default, args=arguments, description=__doc__)
    for name in ("simulations", "go_simulations", "tic_tac_toe_simulations"):
        if getattr(config, name) < 1:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name)}: at least 1.")
    for name in ("go_games", "opponents"):
        if getattr(config, name) < 2 or getattr(config, name) % 2:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name)}: an even number, at least 2.")
    if min(config.batches) < 1 or not 1 <= min(config.rollouts) <= max(config.rollouts) <= 65_536:
        raise SystemExit("--batches: at least 1. --rollouts: from 1 to 65,536.")
    return config


# -------------------------------------------------------------------------------------------------------------- speed
def speed(config: Config, keep: Callable[[dict], None]) -> tuple[dict, str]:
    """Playouts per second: of a search of B games with R playouts per leaf, and of OpenSpiel's bot, one game."""
    import jax
    import pyspiel
    from bench.measure import compiled, interleaved, markdown

    import jaxzero as jz
    from jaxzero import models

    rows = []
    keep({"rows": rows})
    for name in config.games:
        game, rules = load(name), pyspiel.load_game("go(board_size=9,komi=7.5)" if name == "go" else name)
        bot_simulations = config.simulations * (1 if name == "go" else 10)
        bot = pyspiel.MCTSBot(
            rules, pyspiel.RandomRolloutEvaluator(1, 0), 2**0.5, bot_simulations, 1000, False, 0, False
        )
        start = rules.new_initial_state()
        contestants, playouts = {"OpenSpiel": functools.partial(bot.step, start)}, {"OpenSpiel": bot_simulations}
        shapes = [(1, r) for r in config.rollouts] + [(b, config.rollouts[0]) for b in config.batches if b > 1]
        for batch, rollouts in shapes:
            print(f"Compiling {name}, {batch} games, {rollouts} playouts per leaf", flush=True)
            simulations = max(1, config.simulations // (10 if name == "go" and batch > 1 else 1))
            keys = jax.random.split(jax.random.key(0), batch)
            states = jax.block_until_ready(jax.jit(jax.vmap(game.init))(keys))
            policy = jz.uct(models.rollout(game, rollouts), simulations)
            label = f"B = {batch}, R = {rollouts}"
            contestants[label] = compiled(lambda k, s, policy=policy: policy((), k, s).action, keys, states)
            playouts[label] = batch * rollouts * simulations
        times = interleaved(contestants, config.seconds)
        rates = {label: playouts[label] / times[label].seconds for label in contestants}
        for label, rate in rates.items():
            ratio = rate / rates["OpenSpiel"]
            rows.append({"game": name, "who": label, "per_second": rate, "ratio": ratio, "runs": times[label].runs})
    text = markdown(
        ["game", "who", "playouts/s", "against OpenSpiel"],
        [[r["game"], r["who"], r["per_second"], r["ratio"]] for r in rows],
    )
    return {"rows": rows}, text


def load(name: str) -> Any:
    from jaxzero import games

    return games.go(9) if name == "go" else games.from_pgx(name)


# ----------------------------------------------------------------------------------------------------------------- go
def go(config: Config) -> tuple[dict, str]:
    """Rollout search against uniformly random moves, with both colours, from the empty board."""
    import jax

    import jaxzero as jz
    from jaxzero import games, models
    from jaxzero.play import arena

    game = games.go(9)
    # 200 playouts are few for 82 moves: with the usual √2 nearly all go into trying each move twice.
    policy = jz.uct(models.rollout(game), config.go_simulations, rule=jz.ucb1(0.5))
    players = policy, arena.random_player(game)
    keys = jax.random.split(jax.random.key(0), config.go_games // 2)
    score = jax.jit(lambda keys: arena.play(game, players, ((), ()), keys, opening_plies=0, max_plies=162))(keys)
    result = {field: int(value) for field, value in score._asdict().items()}
    return result, (
        f"9×9 Go, {config.go_simulations} playouts per move, against random play, 162 moves at most: "
        f"{result['wins']} won, {result['draws']} drawn, {result['losses']} lost, {result['unfinished']} unfinished."
    )


# -------------------------------------------------------------------------------------------------------- tic-tac-toe
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


@functools.cache
def best_moves(board: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The exact value for the player to move (own stones 1, the opponent's −1), and every move that achieves it."""
    if any(all(board[i] == -1 for i in line) for line in LINES):
        return -1, ()
    free = [i for i in range(9) if board[i] == 0]
    if not free:
        return 0, ()
    values = {i: -best_moves(tuple(-1 if j == i else -x for j, x in enumerate(board)))[0] for i in free}
    value = max(values.values())
    return value, tuple(i for i in free if values[i] == value)


def tic_tac_toe(config: Config) -> tuple[dict, str]:
    """Rollout search against a player that picks among the best moves; each side begins half of the games."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxzero as jz
    from jaxzero import games, models

    game, rng = games.from_pgx("tic_tac_toe"), np.random.default_rng(0)
    policy = jax.jit(jz.uct(models.rollout(game, 4), config.tic_tac_toe_simulations))
    step, observe = jax.jit(jax.vmap(game.step)), jax.jit(jax.vmap(game.observe))
    terminal, rewards = jax.jit(jax.vmap(game.terminal)), jax.jit(jax.vmap(game.rewards))
    half = config.opponents // 2
    result = dict.fromkeys(["won", "drawn", "lost"], 0)
    for search_begins in (True, False):
        keys = jax.random.split(jax.random.key(int(search_begins)), half)
        state = jax.vmap(game.init)(keys)
        starter = np.asarray(jax.vmap(game.to_play)(state))
        mine = starter if search_begins else 1 - starter
        paid = np.zeros(half)
        for ply in range(9):
            if (ply % 2 == 0) == search_begins:
                action = policy((), jax.vmap(lambda key, ply=ply: jax.random.fold_in(key, ply))(keys), state).action
            else:
                boards = np.asarray(observe(state)).astype(int)
                boards = (boards[..., 0] - boards[..., 1]).reshape(half, 9)
                action = jnp.array([rng.choice(best_moves(tuple(board.tolist()))[1] or (0,)) for board in boards])
            over = np.asarray(terminal(state))
            state = step(state, action, keys)
            paid += np.where(over, 0, np.asarray(rewards(state))[np.arange(half), mine])
        assert np.asarray(terminal(state)).all()
        for name, sign in (("won", 1), ("drawn", 0), ("lost", -1)):
            result[name] += int((paid == sign).sum())
    return result, (
        f"Tic-tac-toe, {config.tic_tac_toe_simulations} simulations of 4 playouts per move, {config.opponents} games "
        f"against a player that never errs: {result['won']} won, {result['drawn']} drawn, {result['lost']} lost."
    )


def main(config: Config) -> None:
    # jax is imported here, not above: --help and a mistyped flag are answered at once.
    from bench.measure import measure

    settings = dataclasses.asdict(config)
    del settings["output"]  # a path of this machine
    known = {
        "speed": functools.partial(speed, config),
        "go": lambda keep: go(config),
        "tic_tac_toe": lambda keep: tic_tac_toe(config),
    }
    measure({part: known[part] for part in config.parts}, settings, config.quick, config.output)


if __name__ == "__main__":
    main(parse())
