"""The report of a run of AlphaZero, `report.html`: tables, curves, and six games with what the search thought."""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero import games, viz
from jaxzero.cli.training.reporting.report_parts import how_it_went, page, rows_of, settings_and_next, what_was_learned
from jaxzero.play.browser.board_json import in_shares, worth
from jaxzero.play.notation import names, result_in_words, side_of
from jaxzero.runs import progress_display
from jaxzero.viz import report as pages
from jaxzero.viz.board_shapes import players
from jaxzero.viz.boards import picture_of, without_board

__all__ = ["write"]

GAMES, OPENING, LONGEST = 6, 2, 120  # games shown, random moves at their beginnings, plies shown of each

POINTS = (
    "Points: the share of all points; a win is one, a draw half. In brackets the 95 % interval, then wins, draws and "
    "losses. Each game begins with two random moves, and each seat plays every opening once. Some openings are already "
    "lost, so even the best player loses games; equal players have equal shares."
)
POINTS_SHOWN = "Points: the expected score of the player to move, in %; a draw is half a point."
VALUES_SHOWN = "Values: the expected return of the player to move."
Q_SHOWN = "Q is the mean return for the player who moves"
MISTAKES = (
    "An outcome mistake is a move that makes the best possible result worse, for instance a draw instead of a win."
)

CURVES = (
    ("Rating", "Elo above the network that the run began with", {"rating": "rating/elo"}),
    ("Outcome mistakes on exactly solved positions", "share", {"raw network": "mistakes/raw"}),
    ("Losses", "nats; value: squared error, or nats",
     {"policy": "loss/policy", "its target's entropy": "loss/target_entropy", "value": "loss/value"}),
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
    rows = rows_of(folder)
    words = POINTS + (f" {MISTAKES}" if any("mistakes" in caption for caption, _, _ in tables) else "")
    parts = what_was_learned(tables, words) + how_it_went(rows, CURVES)
    if play:
        parts += thoughts(game, search, params, seed)
    parts += settings_and_next(settings, following)
    return page(folder, f"jaxzero learned {game.id}", rows, parts, verdict)


def thoughts(game: games.Game, search: Callable, params: Any, seed: int, with_tree: bool = True) -> list[pages.Section]:
    """Games of the network against itself, and the tree of its first move, if its nodes hold positions."""
    game = game._replace(**{name: jax.jit(getattr(game, name)) for name in ("observe", "to_play", "legal")})
    with progress_display.announced("Playing the games of the report"):
        records, tree, first = play(game, search, params, seed)
    shown = [_six_games(game, records)]
    if not with_tree:
        return shown
    called = tuple(players(game)[side_of(game, player, first)] for player in range(game.num_players))
    draw = None if game.draw is None and without_board(game) else viz.drawer(game, first)
    picture = viz.tree(tree, names=names(game), draw=draw, players=called)
    said = f"{Q_SHOWN}, from −1 (loss) to +1 (win); the expected points are (1 + Q) / 2."
    said = said if in_shares(game) else f"{Q_SHOWN}."
    body = f"<p class='quiet'>{said}</p>" + pages.framed(picture, "the search tree of the first move")
    return [*shown, pages.Section("The tree of the first move", body)]


def _six_games(game: games.Game, records: Sequence[pages.Record]) -> pages.Section:
    shown = POINTS_SHOWN if in_shares(game) else VALUES_SHOWN
    said = (
        f"<p class='quiet'>The network against itself, after two random moves. Use buttons or arrow keys. {shown}</p>"
    )
    return pages.Section("Six games, with what the search thought", said + pages.stepper(records))


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
        f"{who} to move: {worth(game, report.value)}{' of the points' if in_shares(game) else ''} expected,",
        f"{report.visits:,} visits. {who} plays {called[action]}{', drawn at random' if drawn else ''}.",
        "",
        f"{'move':>{wide}} {'visits':>7} {'points' if in_shares(game) else 'value':>7} {'prior':>6}",
        *(f"{called[c.action]:>{wide}} {c.visits:>7,} {worth(game, c.value):>7} {100 * c.prior:>4.0f} %" for c in best),
        "",
        "Expected play: " + " ".join(called[a] for a in best[0].line) if best else "",
    ]
    last = last if last >= 0 else None
    return pages.Ply(picture_of(game, state, first, report, last), "\n".join(lines))


def at(state: Any, i: int) -> Any:
    """One position of the batch."""
    return jax.tree.map(lambda x: x[i], state)
