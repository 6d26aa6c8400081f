"""The report of a training run, `report.html`: tables, curves, and six games."""

import functools
import json
import pathlib
import platform
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxzero as jz
from jaxzero import games, viz
from jaxzero.play.notation import names, result_in_words, side_of
from jaxzero.runs import metrics, progress_display
from jaxzero.viz import report as pages
from jaxzero.viz.board_shapes import players
from jaxzero.viz.boards import picture_of, without_board
from jaxzero.viz.overlay import expected

__all__ = ["write"]

GAMES, OPENING, LONGEST = 6, 2, 120  # games shown, random moves at their beginnings, plies shown of each
PACKAGES = "jaxzero jax jaxlib flax optax orbax-checkpoint chex pgx numpy".split()

POINTS = (
    "Points: the share of all points that there were; a win is one, a draw half. In brackets the 95 % interval, then "
    "games won, drawn and lost."
)
POINTS_SHOWN = "Points are those expected of the game for the player to move, in %, a draw being half a point."
VALUES_SHOWN = "Values are what is expected to be paid to the player to move."
MISTAKES = (
    "An outcome mistake is a move after which the best result that is left is worse than before: a draw where a win "
    "was there, for instance."
)

# What the curves show: a title, the words beside the axis, and the metrics by the words of their lines.
CURVES = (
    ("Rating", "Elo above the untrained network", {"rating": "rating/elo"}),
    ("Outcome mistakes on exactly solved positions", "share", {"raw network": "mistakes/raw"}),
    ("Losses", "nats; squared error", {"policy": "loss/policy", "its target's entropy": "loss/target_entropy",
                                       "value": "loss/value"}),
    ("Length of games", "plies", {"plies": "selfplay/length"}),
    ("Speed", "positions per second", {"self-play and learning": "speed/positions"}),
)  # fmt: skip


def write(
    folder: pathlib.Path,
    settings: dict,
    game: games.Game,
    search: Callable,
    params: Any,
    tables: Sequence[tuple[str, list[str], list[list[str]]]],
    following: Sequence[str],
    seed: int,
    play: bool,
    verdict: str = "",
) -> pathlib.Path:
    """Makes the page of a run anew.

    Args:
        folder: the run's.
        settings: what it was called with.
        game: what was learned.
        search: a policy that gives its tree; it plays the games that are shown.
        params: what was learned, for the search.
        tables: captions, heads and rows of what was measured.
        following: commands that may follow.
        seed: the games follow from it.
        play: whether there are games at all; they take time.
        verdict: what was reached, in a sentence.
    """
    rows = [row for row in metrics.read(folder) if "minutes" in row]
    heads = POINTS + (f" {MISTAKES}" if any("mistakes" in caption for caption, _, _ in tables) else "")
    learned = "".join(pages.table(*one) for one in tables) + f"<p class='quiet'>{heads}</p>"
    parts = [pages.Section("What was learned", learned)] if tables else []
    if shown := curves(rows):
        parts.append(pages.Section("How it went", pages.pictures(*shown, note=late(rows))))
    if play:
        parts += thoughts(game, search, params, seed)
    given = pages.table("", ["setting", "value"], flat(settings))
    parts.append(pages.Section("Settings", pages.folded(f"All {len(flat(settings))} settings", given)))
    made = pages.table("", ["what", "which"], made_with())
    parts.append(pages.Section("Made with", pages.folded("Versions and device", made)))
    parts.append(pages.Section("What next", pages.commands(following)))
    last = rows[-1] if rows else {"minutes": 0, "step": 0}
    spent = f"{last['step']:,} iterations in {last['minutes']:.1f} minutes on {progress_display.device()}."
    lead = [spent, f"The run's folder: {folder}."]
    return pages.report(f"jaxzero learned {game.id}", lead, parts, verdict).save(folder / "report.html", overwrite=True)


def curves(rows: list[dict]) -> list[viz.Picture]:
    """Pictures of the metrics that there are, over the minutes of the run."""
    found = []
    for title, axis, lines in CURVES:
        simulated = {f"{name.split('/')[1]} simulations": name for row in rows[-1:] for name in last_looks(rows)}
        lines = lines | (simulated if "mistakes/raw" in lines.values() else {})
        series = {}
        for words, name in lines.items():
            points = [(row["minutes"], row[name]) for row in rows if name in row]
            if len(points) > 1:
                series[words] = tuple(np.array(thinned(points)).T)
        if series:
            found.append(viz.curves(series, title=title, x="minutes", y=axis))
    return found


def late(rows: list[dict]) -> str:
    """Why the curves do not begin at the beginning, if they begin late."""
    first, last = rows[0]["minutes"], rows[-1]["minutes"]
    return (
        f"The curves begin after {first:.1f} minutes: until then programs were compiled." if 20 * first > last else ""
    )


def last_looks(rows: list[dict]) -> list[str]:
    """The names of the mistakes that were counted with simulations."""
    return sorted({name for row in rows for name in row if name.startswith("mistakes/") and name != "mistakes/raw"})


def thinned(points: list[tuple[float, float]], most: int = 400) -> list[tuple[float, float]]:
    """Means of neighbours where there are more points than a picture shows."""
    pieces = np.array_split(np.array(points, float), min(len(points), most))
    return [tuple(piece.mean(0)) for piece in pieces]


def flat(settings: dict, prefix: str = "") -> list[list[str]]:
    """Settings by the names that the command line has for them."""
    rows = []
    for name, value in settings.items():
        rows += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [[prefix + name, json.dumps(value)]]
    return rows


def made_with() -> list[list[str]]:
    """Versions and the device."""
    found = [["python", platform.python_version()], ["device", progress_display.device()]]
    for name in PACKAGES:
        try:
            found.append([name, metadata.version(name)])
        except metadata.PackageNotFoundError:
            found.append([name, jz.__version__ if name == "jaxzero" else "not installed"])
    return found


def thoughts(game: games.Game, search: Callable, params: Any, seed: int) -> list[pages.Section]:
    """Games of the network against itself, and the tree of its first move."""
    game = game._replace(**{name: jax.jit(getattr(game, name)) for name in ("observe", "to_play", "legal")})
    with progress_display.announced("Playing the games of the report"):
        records, tree, first = play(game, search, params, seed)
    called = tuple(players(game)[side_of(game, player, first)] for player in range(game.num_players))
    draw = None if game.draw is None and without_board(game) else viz.drawer(game, first)
    picture = viz.tree(tree, names=names(game), draw=draw, players=called)
    return [
        pages.Section(
            "Six games, with what the search thought",
            "<p class='quiet'>The network against itself, after two random moves. Buttons, or the arrow keys. "
            + (
                POINTS_SHOWN
                if game.num_players == 2
                else "Values are what is expected to be paid to the player to move."
            )
            + "</p>"
            + pages.stepper(records),
        ),
        pages.Section(
            "The tree of the first move",
            "<p class='quiet'>Q is the mean return for the player who moves, from −1, lost, to +1, won: the points "
            "expected are (1 + Q) / 2.</p>" + pages.framed(picture, "the search tree of the first move"),
        ),
    ]


def play(game: games.Game, search: Callable, params: Any, seed: int):
    """Games in lock-step: their records, and the tree of the first position with who is to move in it."""
    begin, *keys = jax.random.split(jax.random.key(seed), 1 + LONGEST)
    state = jax.jit(jax.vmap(game.init))(jax.random.split(begin, GAMES))
    firsts = np.asarray(jax.vmap(game.to_play)(state))
    think = jax.jit(functools.partial(turn, game, search))
    ended, reward = jax.jit(jax.vmap(game.terminal)), jax.jit(jax.vmap(game.rewards))
    plies, tree, lasts, over = [[] for _ in range(GAMES)], None, np.full(GAMES, -1), np.zeros(GAMES, bool)
    paid = np.zeros((GAMES, game.num_players))
    for ply in range(LONGEST):
        out, after, action = think(params, jax.random.split(keys[ply], GAMES), state, ply < OPENING)
        tree = out.tree if tree is None else tree
        for i in np.flatnonzero(~over):
            report = viz.report_of(out.tree, int(i))
            moved = int(lasts[i]), int(action[i]), ply < OPENING
            plies[i].append(moment(game, at(state, i), int(firsts[i]), report, *moved))
        state, lasts, before = after, np.asarray(action), over
        over = np.asarray(ended(state))
        paid += np.where(before[:, None], 0, np.asarray(reward(state)))
        for i in np.flatnonzero(over & ~before):
            words = result_in_words(players(game), np.roll(paid[i], -firsts[i]))
            board = picture_of(game, at(state, i), int(firsts[i]), last=int(lasts[i]))
            plies[i].append(pages.Ply(board, f"{words} {len(plies[i])} moves."))
        if over.all():
            break
    titles = [one[-1].words if done else f"Not over after {LONGEST} moves." for one, done in zip(plies, over)]
    records = [pages.Record(f"Game {i + 1}: {title}", tuple(plies[i])) for i, title in enumerate(titles)]
    return records, tree, int(firsts[0])


def turn(game: games.Game, search: Callable, params: Any, keys: jax.Array, state: Any, at_random: Any):
    """A search in every game, and a move: the search's, or a random one."""
    search_keys, draw_keys, step_keys = jax.vmap(lambda key: jax.random.split(key, 3))(keys).T
    out = search(params, search_keys, state)
    logits = jnp.where(jax.vmap(game.legal)(state), 0.0, -jnp.inf)
    action = jnp.where(at_random, jax.vmap(jax.random.categorical)(draw_keys, logits), out.action)
    return out, jax.vmap(game.step)(state, action, step_keys), action


def moment(game: games.Game, state: Any, first: int, report: Any, last: int, action: int, drawn: bool) -> pages.Ply:
    """A position, what the search thought of it, and what was played."""
    called, best = names(game), report.candidates[:5]
    who, wide = players(game)[side_of(game, int(game.to_play(state)), first)], max(4, *map(len, called))
    lines = [
        f"{who} to move: {_worth(game, report.value, ' % of the points')} expected,",
        f"{report.visits:,} visits. {who} plays {called[action]}{', drawn at random' if drawn else ''}.",
        "",
        f"{'move':>{wide}} {'visits':>7} {'points' if game.num_players == 2 else 'value':>7} {'prior':>6}",
        *(
            f"{called[c.action]:>{wide}} {c.visits:>7,} {_worth(game, c.value, ' %'):>7} {100 * c.prior:>4.0f} %"
            for c in best
        ),
        "",
        "Expected play: " + " ".join(called[a] for a in best[0].line) if best else "",
    ]
    last = last if last >= 0 else None
    return pages.Ply(picture_of(game, state, first, report, last), "\n".join(lines))


def _worth(game: games.Game, value: float, unit: str) -> str:
    """Expected points of two players; of more the value: half of the points is more than an equal share there."""
    return f"{expected(value)}{unit}" if game.num_players == 2 else f"{value:+.2f}"


def at(state: Any, i: int) -> Any:
    """One position of the batch."""
    return jax.tree.map(lambda x: x[i], state)
