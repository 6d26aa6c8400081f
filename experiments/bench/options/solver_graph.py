"""The parts `solver` and `graph` of `options.py`: proven values and transpositions, on positions of known value."""

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from bench.measure import Keep, Progress, markdown
from rollouts import best_moves

import jaxzero as jz
from jaxzero import games, models
from jaxzero.models.chance import select_rows
from jaxzero.play import outcome_mistakes

__all__ = ["exact", "graph", "solver", "tic_tac_toe"]


class Exact(NamedTuple):
    """Positions, and for each the sign of every move `[n, A]`: 1, 0, −1, and −2 where it is illegal."""

    state: Any
    signs: np.ndarray


def exact(game: games.Game, phase: str, most: int) -> Exact:
    """Positions of one phase of Connect Four, evenly from the file."""
    found = outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    rows = np.flatnonzero(found.phase == phase)
    rows = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]
    signs = np.where(np.isnan(found.scores), -2, np.sign(found.scores))
    return Exact(jax.tree.map(lambda x: x[rows], found.state), signs[rows])


def tic_tac_toe(game: games.Game, count: int) -> Exact:
    """The first position, and others after one to three random moves."""
    keys = jax.random.split(jax.random.key(0), count)
    state, rng = jax.vmap(game.init)(keys), np.random.default_rng(0)
    for ply in range(3):
        action = jnp.asarray([rng.choice(np.flatnonzero(row)) for row in np.asarray(jax.vmap(game.legal)(state))])
        moves = np.arange(count) % 4 > ply
        moves[0] = False
        after = jax.jit(jax.vmap(game.step))(state, action, keys)
        state = select_rows(moves, after, state)
    signs = np.full((count, 9), -2.0)
    for row, planes in zip(signs, np.asarray(jax.vmap(game.observe)(state)).astype(int)):
        board = (planes[..., 0] - planes[..., 1]).reshape(9)
        for move in np.flatnonzero(board == 0):
            after = board.copy()
            after[move] = 1
            row[move] = -best_moves(tuple((-after).tolist()))[0]
    return Exact(state, signs)


def uniform(game: games.Game) -> jz.Model:
    """The rules with a network that knows nothing, so that all results come from search."""
    return models.perfect(game, lambda params, seen: (jnp.zeros((len(seen), game.num_actions)), jnp.zeros(len(seen))))


def searched(game: games.Game, positions: Exact, simulations: int, **how: Any) -> tuple[Any, float]:
    """One compiled search of all positions as one batch, and its seconds."""
    policy = jz.alphazero(uniform(game), simulations, dirichlet_fraction=0.0, act=jz.most_visited, **how)
    keys = jax.random.split(jax.random.key(0), len(positions.signs))
    program = jax.jit(policy).lower((), keys, positions.state).compile()
    start = time.perf_counter()
    return jax.block_until_ready(program((), keys, positions.state)), time.perf_counter() - start


def wrong(out: Any, positions: Exact) -> np.ndarray:
    """Positions in which the action is an outcome mistake."""
    return np.take_along_axis(positions.signs, np.asarray(out.action)[:, None], 1)[:, 0] < positions.signs.max(1)


def proofs(out: Any, positions: Exact, simulations: int) -> dict[str, float]:
    """The proven values, and whether they are true."""
    low, high = np.asarray(jz.options.bounds(out.tree)).T
    proven, value = low == high, positions.signs.max(1)
    used = np.asarray(out.tree.root.simulations)
    return {
        "proven": float(proven.mean()),
        "wrong_values": int((proven & (low != value)).sum()),
        "wrong_bounds": int(((low > value) | (value > high)).sum()),
        "saved": float(1 - used.mean() / simulations),
        "simulations_if_proven": float(np.median(used[proven])) if proven.any() else None,
        "mistakes_where_proven": int((proven & wrong(out, positions)).sum()),
    }


RULES = {"avoid_proven": jz.avoid_proven, "seek_proof": jz.options.seek_proof}
WAYS = {"tree": {}, "graph": {"simulate": jz.transpositions()}}


# ----------------------------------------------------------------------------------------------------------- solver
def solver(config: Any, keep: Keep) -> tuple[dict, str]:
    """Exact endings of Connect Four, and tic-tac-toe from the start, with a network that knows nothing."""
    game = games.from_pgx("connect_four")
    positions = exact(game, "end", config.positions)
    plan = [("plain", way) for way in WAYS] + [(rule, way) for rule in RULES for way in WAYS]
    progress, rows, starts = Progress([2] * len(plan) + [1] * (2 * len(RULES))), [], []
    keep({"connect_four": rows, "tic_tac_toe": starts})
    for name, way in plan:
        progress.next(f"Connect Four endings, {name}, {way}")
        how = WAYS[way] | ({} if name == "plain" else {"rule": RULES[name](jz.puct()), "stop": jz.solved})
        out, seconds = searched(game, positions, config.simulations, **how)
        row = {"rule": name, "way": way, "seconds": seconds, "mistakes": float(wrong(out, positions).mean())}
        rows.append(row if name == "plain" else row | proofs(out, positions, config.simulations))
    text = markdown(
        ["rule", "way", "proven", "wrong values", "wrong bounds", "simulations saved", "mistakes", "where proven", "s"],
        [[r["rule"], r["way"], f"{r['proven']:.1%}", r["wrong_values"], r["wrong_bounds"], f"{r['saved']:.1%}",
          f"{r['mistakes']:.1%}", r["mistakes_where_proven"], r["seconds"]] if "proven" in r else
         [r["rule"], r["way"], *[""] * 4, f"{r['mistakes']:.1%}", "", r["seconds"]] for r in rows],
    )  # fmt: skip
    text = f"{len(positions.signs)} positions, at most {config.simulations} simulations, stop=solved\n\n{text}"
    game, most = games.from_pgx("tic_tac_toe"), config.start_simulations
    for name, rule in RULES.items():
        for way in WAYS:
            progress.next(f"tic-tac-toe, {name}, {way}")
            start = tic_tac_toe(game, 1)
            out, seconds = searched(game, start, most, rule=rule(jz.puct()), stop=jz.solved, **WAYS[way])
            low, high = (float(x) for x in jz.options.bounds(out.tree)[0])
            used = int(out.tree.root.simulations[0])
            starts.append({"rule": name, "way": way, "bounds": [low, high], "simulations": used, "seconds": seconds})
    text += f"\n\nTic-tac-toe from the start, at most {most} simulations\n\n" + markdown(
        ["rule", "way", "simulations till solved", "value between", "s"],
        [[r["rule"], r["way"], r["simulations"] if r["bounds"][0] == r["bounds"][1] else f"not in {most}",
          "{:g} and {:g}".format(*r["bounds"]), r["seconds"]] for r in starts],
    )  # fmt: skip
    return {"connect_four": rows, "tic_tac_toe": starts}, text


# ------------------------------------------------------------------------------------------------------------ graph
def graph(config: Any, keep: Keep) -> tuple[dict, str]:
    """The same simulations with and without transpositions."""
    count = max(2, min(64, config.positions))
    tic_tac, four = games.from_pgx("tic_tac_toe"), games.from_pgx("connect_four")
    keys = jax.random.split(jax.random.key(0), 1)
    start = Exact(jax.vmap(four.init)(keys), np.array([[-1, -1, 0, 1, 0, -1, -1]]))  # Allis 1988: the centre wins
    sets = [("tic-tac-toe", "first moves", tic_tac, tic_tac_toe(tic_tac, count))]
    for phase in config.phases:
        sets.append(("Connect Four", phase, four, start if phase == "start" else exact(four, phase, count)))
    progress, rows = Progress([1] * (2 * len(sets))), []
    keep({"rows": rows})
    for name, phase, game, positions in sets:
        for way, how in WAYS.items():
            progress.next(f"{name}, {phase}, {way}")
            rows.append({"game": name, "phase": phase, "way": way} | _held(game, positions, config.simulations, how))
    text = markdown(
        ["game", "positions", "way", "positions/simulation", "mean depth", "mistakes", "proven", "median till proven"],
        [[r["game"], r["phase"], r["way"], r["positions_per_simulation"], r["mean_length"], f"{r['mistakes']:.1%}",
          f"{r['proven']:.1%}", "" if r["simulations_if_proven"] is None else r["simulations_if_proven"]]
         for r in rows],
    )  # fmt: skip
    text += (
        f"\n\n{count} positions of each kind (one start), {config.simulations} simulations, a network that knows "
        "nothing. Positions of a tree: its nodes, of which several may show one position. Mean depth: of the walks. "
        "Proven: by avoid_proven, in a search of its own."
    )
    return {"rows": rows}, text


def _held(game: games.Game, positions: Exact, simulations: int, how: dict) -> dict:
    out, seconds = searched(game, positions, simulations, **how)
    visits = np.asarray(out.tree.visits)
    held = (visits > 0).sum(-1) if out.tree.graph is None else np.asarray(jz.options.num_positions(out.tree))
    proof, _ = searched(game, positions, simulations, rule=jz.avoid_proven(jz.puct()), stop=jz.solved, **how)
    return {
        "positions_per_simulation": float((held - 1).mean() / simulations),
        "mean_length": float(visits[:, 1:].sum() / (visits[:, 0] - 1).sum()),
        "mistakes": float(wrong(out, positions).mean()),
        "seconds": seconds,
    } | proofs(proof, positions, simulations)
