"""A game as JSON, for drawing: the board, a position, and what a search thinks there.

Places are `[row, column]` from the top left, or None for what is not on the board, like a pass. Shares are expected
points of one game, between 0 and 1: a win is one, a draw half. Where wins pay more or less, and with more than two
players, values are shown instead (`in_shares`).
"""

import math
import re
from typing import Any

import numpy as np

from jaxzero.games.game import Game
from jaxzero.play.analysis import Report
from jaxzero.play.browser.winning_line import winning_stones
from jaxzero.play.engine import Engine
from jaxzero.play.notation import coordinates, family, has_board, names, own_picture, result_in_words, stones
from jaxzero.play.scoring import final_score

__all__ = ["in_shares", "layout", "outcome", "position", "share", "thoughts", "worth"]

Place = list[int] | None

TITLES = {"tic_tac_toe": "Tic-tac-toe", "connect_four": "Connect Four"}
SIDES = {
    "go": ("Black", "White"),
    "othello": ("Black", "White"),
    "tic_tac_toe": ("X", "O"),
    "plain": ("Black", "White"),
}


def kind(game: Game) -> str:
    """How the board looks: "go", "othello", "connect_four", "hex", "tic_tac_toe", "plain" squares; "list": none."""
    if not has_board(game):
        return "list"
    return family(game) if family(game) in ("go", "othello", "connect_four", "hex", "tic_tac_toe") else "plain"


def in_shares(game: Game) -> bool:
    """Whether values are shown as shares of the points: only for two players, and if no wins pay more than others."""
    return game.num_players == 2 and game.outcomes is None


def worth(game: Game, value: float) -> str:
    """A value as text: a share of the points where values are shown as such, else as it is.

    >>> from jaxzero import games
    >>> worth(games.go(5), 0.5), worth(games.backgammon(), 1 / 3), worth(games.go(5), float("nan"))
    ('75 %', '+0.33', '? %')
    """
    if not in_shares(game):
        return f"{value:+.2f}"
    return f"{100 * share(value):.0f} %" if math.isfinite(value) else "? %"


def layout(game: Game) -> dict[str, Any]:
    """What stays the same during a game: its board, if it has one, its players, and the names of its actions.

    >>> from jaxzero import games
    >>> told = layout(games.go(5))
    >>> told["title"], told["sides"], told["rows"], told["columnNames"], told["rowNames"], told["beside"]
    ('Go 5×5', ['Black', 'White'], 5, ['A', 'B', 'C', 'D', 'E'], ['5', '4', '3', '2', '1'], [25])
    >>> layout(games.hex_game(7))["title"]
    'Hex 7×7'
    """
    called, look = names(game), kind(game)
    if look == "list":
        return {
            "title": _title(game.id),
            "kind": look,
            "shares": in_shares(game),
            "rows": 0,
            "columns": 0,
            "sides": [f"Player {i + 1}" for i in range(game.num_players)],
            "names": list(called),
            "columnNames": [],
            "rowNames": [],
            "beside": list(range(game.num_actions)),
        }
    rows, columns = game.observation_shape[:2]
    title = f"Go {rows}×{columns}" if look == "go" else TITLES.get(game.id, _title(game.id))
    letters, numbers = (list(called), []) if look == "connect_four" else coordinates(called, rows, columns)
    return {
        "title": title,
        "kind": look,
        "shares": in_shares(game),
        "rows": rows,
        "columns": columns,
        "sides": list(SIDES.get(look, ("Blue", "Orange"))),
        "names": list(called),
        "columnNames": letters,
        "rowNames": numbers,
        "beside": [] if look == "connect_four" else list(range(rows * columns, game.num_actions)),
    }


def _title(name: str) -> str:
    """A game's id for people: "Hex 7×7"."""
    return re.sub(r"(\d)X(\d)", r"\1×\2", name.replace("_", " ").title())


def place(look: str, board: np.ndarray, action: int) -> Place:
    """Where an action puts its stone: in Connect Four on top of the column, elsewhere on its square."""
    rows, columns = board.shape
    if look == "list":
        return None
    if look == "connect_four":
        free = rows - int((board[:, action] > 0).sum())
        return [free - 1, action] if free else None
    return [int(x) for x in divmod(action, columns)] if action < rows * columns else None


def _stones(engine: Engine) -> np.ndarray:
    """Whose stone is on each square; empty for a game without a board."""
    if not has_board(engine.game):
        return np.zeros((0, 0), np.int8)
    return stones(engine.game, engine.position(), engine.first)


def share(value: float) -> float:
    """Expected points for a value between −1 and 1, which rounding may exceed in a search of few visits.

    >>> share(-1.0), share(0.5)
    (0.0, 0.75)
    """
    return min(max((value + 1) / 2, 0.0), 1.0)


def position(engine: Engine, komi: float | None = None) -> dict[str, Any]:
    """The position of an engine: stones, moves, legal actions, whose turn it is, how it ended."""
    game, look, called = engine.game, kind(engine.game), names(engine.game)
    board = _stones(engine)
    last, over = (engine.moves[-1] if engine.moves else None), engine.over()
    where = None
    if last is not None and look == "connect_four":
        where = [int(np.argmax(board[:, last] > 0)), last]
    elif last is not None:
        where = place(look, board, last)
    return {
        "stones": board.ravel().tolist(),
        "legal": np.flatnonzero(engine.legal()).tolist(),
        "places": [place(look, board, action) for action in range(game.num_actions)],
        "moves": [called[action] for action in engine.moves],
        "last": where,
        "winning": [list(square) for square in winning_stones(look, board)] if over else [],
        "toMove": engine.to_move(),
        "over": over,
        "result": share(engine.paid()[0]) if over and game.num_players == 2 else None,
        "picture": None if game.draw is None else own_picture(game, engine.position()),
        "outcome": outcome(engine, layout(game)["sides"], komi) if over else None,
    }


def outcome(engine: Engine, sides: list[str] | tuple[str, str], komi: float | None = None) -> str:
    """How a game has ended, in a sentence, by how much where it is known; komi: of Go, None: not known."""
    if kind(engine.game) == "list":
        return result_in_words(sides, engine.paid())
    paid = engine.result()
    if paid == 0:
        return "The game is a draw."
    winner = sides[0 if paid > 0 else 1]
    if kind(engine.game) == "othello" or (kind(engine.game) == "go" and komi is not None):
        score = final_score(engine.game, engine.position(), engine.first, komi or 0.0)
        if points := score[2:]:  # a game of pgx that repeats a position ends without
            return f"{winner} has won by {points} {'point' if points == '1' else 'points'}."
    return f"{winner} has won."


def thoughts(engine: Engine, report: Report | None = None, kept: int = 0, least: int = 0) -> dict[str, Any] | None:
    """What the search thinks of the position; None: nothing was searched.

    `first` is the share of the player who moved first, of two. `share`, and `value`, which is shown for more players,
    are those of the player to move, and so are the candidates'. `kept`: how many of the visits were there before the
    search that is shown. `least`: the visits that each legal move was given, good or bad.
    """
    report = engine.report() if report is None else report
    if not report.candidates:
        return None
    mover, look = engine.to_move(), kind(engine.game)
    board, two = _stones(engine), engine.game.num_players == 2
    value = _unforced(report, least)
    return {
        "visits": report.visits,
        "kept": kept,
        "mover": mover,
        "share": share(value),
        "value": value,
        "first": share(value if mover == 0 else -value) if two else None,
        "candidates": [
            {"action": c.action, "visits": c.visits, "share": share(c.value), "value": c.value, "prior": c.prior}
            for c in report.candidates
        ],
        "line": expected(engine.game, look, board, mover, report.candidates[0].line),
    }


def _unforced(report: Report, least: int) -> float:
    """The value of a position without the visits given to every legal move, which would make it too low.

    At a solved position, and where no other visits are left, the root's own value.
    """
    more = [max(one.visits - least, 0) for one in report.candidates]
    if least == 0 or sum(more) == 0 or abs(report.value - report.candidates[0].value) < 1e-6:
        return report.value
    return sum(n * one.value for n, one in zip(more, report.candidates)) / sum(more)


def expected(game: Game, look: str, board: np.ndarray, mover: int, line: tuple[int, ...]) -> list[dict[str, Any]]:
    """The expected play, with names and places, players in turn; stones taken on the way still stand."""
    called, board, told = names(game), board.copy(), []
    for ply, action in enumerate(line):
        where, player = place(look, board, action), (mover + ply) % game.num_players
        told.append({"name": called[action], "place": where, "player": player})
        if where is not None:
            board[tuple(where)] = player + 1
    return told
