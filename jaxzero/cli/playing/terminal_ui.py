"""Playing in the terminal."""

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator

from jaxzero.cli.playing.board_colours import painted
from jaxzero.cli.playing.play_settings import Player, komi
from jaxzero.play.analysis import spread
from jaxzero.play.browser import board_json
from jaxzero.play.engine import Engine
from jaxzero.play.notation import actions_by_name, drawn, has_board, names
from jaxzero.runs import progress_display

__all__ = ["play", "say", "thinking"]

SWAP = "swap-pieces"  # a move of Hex, the pie rule; `swap` is a command
WIDTH = 79  # of printed lines
MANY = 60  # legal moves that are listed, where there is no board
ROWS = 7  # moves in the table of what the search thinks
SIDES = "X", "O"
POINTS = "Points: the expected score of the player who moves; a draw is half a point."
VISITS = "Visits: the share of the search spent on the move; with few of them, its points are uncertain."
HELP = """  {move:<8} a move, as the board names it
  hint     what I would play in your place, and how I rate your moves
  undo     takes back your last move and my reply
  swap     changes sides
  help, ?  prints these lines
  quit     ends the game
The first letter of hint, undo, swap or quit is enough."""


def say(*sentences: str) -> None:
    """Prints sentences in lines that fit."""
    print(textwrap.fill(" ".join(sentences), WIDTH, break_on_hyphens=False))


def in_words(thinker: Engine, whose: str) -> str:
    """What the engine expects for the player to move: the value of its best move, as hints also try all other moves."""
    report, called = thinker.report(1), names(thinker.game)
    best = report.candidates[0]
    line = " ".join(called[a] for a in best.line)
    worth = board_json.worth(thinker.game, best.value)
    points = f"{worth} of the points" if _in_shares(thinker) else f"a value of {worth}"
    return f"I expect {points} for {whose}, after {report.visits:,} simulations. Expected line: {line}"


def _in_shares(thinker: Engine) -> bool:
    """Whether values are shown as shares of the points."""
    return board_json.in_shares(thinker.game)


@contextlib.contextmanager
def thinking(called: tuple[str, ...]) -> Iterator[Callable[[Engine], None]]:
    """A callback that watches a search: on a terminal it shows the progress of a search that takes long."""
    began, last = time.monotonic(), [0.0]
    if not progress_display.console.is_terminal:
        yield lambda thinker: None
        return
    with contextlib.ExitStack() as shows:
        status = []

        def look(thinker: Engine) -> None:
            now = time.monotonic()
            if now - began < 1 or now - last[0] < 0.25:
                return
            last[0] = now
            if not status:
                status.append(shows.enter_context(progress_display.console.status("")))
            report = thinker.report(1)
            best = report.candidates[0]
            status[0].update(
                f"Thinking, {now - began:.0f} s: {called[best.action]} "
                f"({board_json.worth(thinker.game, best.value)}) after {report.visits:,} simulations"
            )

        yield look


def table(thinker: Engine) -> list[str]:
    """The moves that were searched in the position, a line each, those with the most visits."""
    report, called = thinker.report(ROWS), names(thinker.game)
    wide = max([4, *(len(called[one.action]) for one in report.candidates)])
    rows = []
    two = _in_shares(thinker)
    for one in report.candidates:
        worth = board_json.worth(thinker.game, one.value)
        rows.append(f"  {called[one.action]:>{wide}}   {worth:>6}   {100 * one.visits / report.visits:4.0f} %")
    return [f"  {'move':>{wide}}   {'points' if two else ' value'}   visits", *rows] if rows else []


def play(thinker: Engine, player: Player, limit: dict, second: bool, ask: Callable[[str], str] = input) -> None:
    """Plays a game, and further ones if the person wants them.

    Args:
        thinker: the engine.
        player: its settings.
        limit: of each search, for `Engine.think`.
        second: whether the person plays second, so that the engine moves first.
        ask: asks for what is typed.
    """
    called, explain, changed = names(thinker.game), [POINTS, VISITS] if _in_shares(thinker) else [], True
    sides = SIDES if has_board(thinker.game) else tuple(board_json.layout(thinker.game)["sides"])
    you = 1 if second else 0
    while True:
        if changed:
            print("\n" + "\n".join(position(thinker)))
        if thinker.over():
            say(board_json.outcome(thinker, sides, komi(player)))
            word = ask("Another game? [y/N] or undo: ").strip().lower()
            if word in ("undo", "u"):
                changed = _back(thinker, you)
            elif word in ("y", "yes"):
                thinker.clear()
                changed = True
            else:
                return
        elif (side := thinker.to_move()) != you:
            action = _think(thinker, limit)
            who = "I play" if len(sides) == 2 else f"I play for {sides[side]}:"
            say(f"{who} {called[action]}.", in_words(thinker, "me" if len(sides) == 2 else sides[side]))
            thinker.play(action)
            if called[action] == SWAP:
                say(f"Your stone is mine now, on its mirror image. You are still {sides[you]}.")
            changed = True
            if player.ponder:
                thinker.ponder()
        else:
            taking = SWAP in called and thinker.legal()[called.index(SWAP)]
            pie = f", {SWAP} to take over the first stone" if taking else ""
            word = ask(f"Your move ({sides[you]}){pie}, hint, undo, swap, help or quit: ").strip().lower()
            if word in ("quit", "q"):
                return
            if changed := word in ("swap", "s"):
                you = (you + 1) % len(sides)
                say(f"You are {sides[you]} now.")
                if taking:
                    say(f"(To take over the first stone, change sides again, and play {SWAP}.)")
            elif word in ("undo", "u"):
                changed = _back(thinker, you)
            elif word in ("hint", "h"):
                action = _think(thinker, _of_every_move(thinker, limit))
                say(f"I would play {called[action]}.", in_words(thinker, "you"))
                _tell_moves(thinker, explain)  # ratings before every move would give the answer away
            elif word:
                changed = _move(thinker, word)


def _think(thinker: Engine, limit: dict) -> int:
    with thinking(names(thinker.game)) as look:
        return thinker.think(**limit, look=look)


def _of_every_move(thinker: Engine, limit: dict) -> dict:
    """The limit of a search that says something of every legal move, for a hint."""
    simulations, least = spread(limit["simulations"], int(thinker.legal().sum()))
    return limit | {"simulations": simulations, "least": least}


def _tell_moves(thinker: Engine, explain: list[str]) -> None:
    """Prints what the search thinks of the moves, if it has results; explanations are printed once."""
    if rows := table(thinker):
        print("\n".join(rows))
        while explain:
            say(explain.pop(0))


def _move(thinker: Engine, word: str) -> bool:
    """Plays the move that the person typed; returns whether it was one. If not, prints what can be typed."""
    called, legal = names(thinker.game), thinker.legal()
    actions = actions_by_name(called)
    allowed = [name for name, ok in zip(called, legal) if ok]
    if word in actions and legal[actions[word]]:
        thinker.play(actions[word])
        return True
    if word in ("help", "?"):
        print(HELP.format(move=allowed[0]))
    else:
        say(f"{word[:40]!r} is no legal move. There are: {' '.join(allowed)}. Or type help.")
    return False


def _last(thinker: Engine) -> int | None:
    return thinker.moves[-1] if thinker.moves else None


def position(thinker: Engine) -> list[str]:
    """The position in letters: the board, or the moves that led to it where there is none."""
    if has_board(thinker.game):
        return painted(thinker, drawn(thinker.game, thinker.position(), thinker.first, _last(thinker)))
    called, told = names(thinker.game), thinker.game.text
    legal = [name for name, ok in zip(called, thinker.legal()) if ok]
    if told is not None:
        return [*told(thinker.position()).splitlines(), *([f"Legal moves: {' '.join(legal)}"] if legal else [])]
    made = " ".join(called[action] for action in thinker.moves) or "none."
    more = f" and {len(legal) - MANY} more" if len(legal) > MANY else ""
    lines = [f"Moves so far: {made}", *([f"Legal moves: {' '.join(legal[:MANY])}{more}"] if legal else [])]
    if not thinker.moves and thinker.game.draw is not None:
        lines.append("With --browser there is a picture of the position.")
    return lines


def _back(thinker: Engine, you: int) -> bool:
    """Goes back to before the person's last move; returns whether there was one."""
    before = [ply for ply, mover in enumerate(thinker.movers) if mover == you]
    if not before:
        say("There is no move of yours to take back.")
    while before and len(thinker.moves) > before[-1]:
        thinker.undo()
    return bool(before)
