"""2048 in the terminal: what is printed, and what is typed."""

import sys
import textwrap
import time
from collections.abc import Callable

from rich.live import Live
from rich.text import Text

from jaxzero.games.rules_2048 import COLOURS, NAMES, SIDE
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048.session import Hint, Look, Session, Turn
from jaxzero.runs import progress_display

__all__ = ["board", "hint_in_words", "play", "watch"]

KEYS = {"a": 0, "w": 1, "d": 2, "s": 3} | {name: action for action, name in enumerate(NAMES)}
FULL = {"h": "hint", "u": "undo", "n": "new", "q": "quit", "?": "help"}
MOST = 100_000  # moves of `auto`: no game is longer
WIDTH = 79  # of printed lines
POINTS = "Points: the expected future score, including the reward of the move itself."
HELP = """  left, up, right, down, or a, w, d, s    a move
  hint      the expected points of each move, and the best move
  undo      takes back the last move; the same move again brings the same tile
  auto 10   plays 10 moves; auto alone plays one
  new       starts another game; undo returns to this one
  help, ?   prints these lines
  quit      ends the program
The first letter of hint, undo, new or quit is enough."""


def play(session: Session, look: Look, ask: Callable[[str], str] = input) -> None:
    """Plays a game, and further ones if the user wants them.

    Args:
        session: the first game.
        look: rates the moves of a position.
        ask: asks for what is typed.
    """
    explain, shown = [POINTS], None
    while True:
        now = session.now
        if now is not shown:
            show(now)
            shown = now
        word = _asked(
            ask, "Move (a w d s), hint, undo, auto N, new, help or quit" if now.legal else "new, undo or quit"
        )
        if word == "quit":
            return say(games.result(session.now))
        if word == "help":
            print(HELP)
        elif word == "hint" and now.legal:
            print("\n".join(hint_in_words(look(now))))
            while explain:
                say(explain.pop())
        elif word:
            session = _changed(session, look, word)


def _asked(ask: Callable[[str], str], choices: str) -> str:
    """What is typed, in full; the end of the input and Ctrl-C are `quit`."""
    try:
        word = " ".join(ask(f"{choices}: ").lower().split())
    except (EOFError, KeyboardInterrupt):
        print()
        return "quit"
    if not sys.stdin.isatty():  # nobody sees there what was typed
        print(word)
    return FULL.get(word, word)


def _changed(session: Session, look: Look, word: str) -> Session:
    """The session after the typed command. If the command is impossible: the same session, and a printed sentence."""
    first, _, count = word.partition(" ")
    try:
        if word in KEYS:
            return games.play(session, KEYS[word])
        if word == "undo":
            return games.undo(session)
        if word == "new":
            return games.new(session)
        if word == "hint" or (first == "auto" and not session.now.legal):
            raise ValueError("The game is over: no move would change anything.")
        if first == "auto":
            return watch(session, look, _moves(count or "1"), 0.0)
        raise ValueError(f"{word[:40]!r} is no command. Type a move: {', '.join(NAMES)}, or a, w, d, s; or help.")
    except ValueError as error:
        say(str(error))
        return session


def _moves(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 9 and 1 <= int(word) <= MOST):
        raise ValueError(f"auto {word[:40]}: give a number of moves, from 1 to {MOST:,}, like auto 10.")
    return int(word)


def watch(session: Session, look: Look, moves: int, delay: float) -> Session:
    """Plays up to `moves` best moves, until the game is over or Ctrl-C. Redraws on a terminal, else prints lines."""
    console = progress_display.console
    if not console.is_terminal:
        return _moved(session, look, moves, delay, lambda session, hint: print(_line(session, hint), flush=True))
    with Live(console=console, auto_refresh=False, transient=True) as live:
        both = lambda session, hint: Text("\n").join([board(session.now), Text(_line(session, hint))])
        shown = lambda session, hint: live.update(both(session, hint), refresh=True)
        return _moved(session, look, moves, delay, shown)


def _moved(session: Session, look: Look, moves: int, delay: float, shown: Callable[[Session, Hint], None]) -> Session:
    try:
        for _ in range(moves):
            if not session.now.legal:
                break
            began, hint = time.monotonic(), look(session.now)
            session = games.play(session, hint.best)
            shown(session, hint)
            time.sleep(max(0.0, delay - (time.monotonic() - began)))
    except KeyboardInterrupt:
        print("\nStopped.")
    return session


def _line(session: Session, hint: Hint) -> str:
    """The move that was made, and the position that it led to, in words."""
    turn, paid = session.now, session.now.score - session.before[-1].score
    standing = f"score {turn.score:,}, largest {games.largest(turn):,}"
    return f"{turn.moves:6,}  {NAMES[hint.best]:<5}  {standing}; {hint.values[hint.best] - paid:,.0f} more are expected"


def show(turn: Turn) -> None:
    """The board, and below it the score."""
    progress_display.console.print(Text("\n").join([Text(), board(turn), Text(_standing(turn))]), soft_wrap=True)


def _standing(turn: Turn) -> str:
    standing = f"Score {turn.score:,}   largest tile {games.largest(turn):,}   moves {turn.moves:,}"
    return standing if turn.legal else f"The game is over: {games.result(turn)}"


def board(turn: Turn) -> Text:
    """Four rows of tiles: in their colours where there are colours, else as numbers and dots."""
    rows = [turn.cells[at : at + SIDE].tolist() for at in range(0, len(turn.cells), SIDE)]
    lines = [line for row in rows for line in (_tiles(row) if _colours() else [_plain(row)])]
    return Text("\n").join(lines)


def _colours() -> bool:
    console = progress_display.console
    coloured = console.is_terminal and console.color_system is not None and not console.no_color
    return coloured and not console.options.ascii_only


def _plain(row: list[int]) -> Text:
    return Text("".join(f"{2**exponent if exponent else '.':>7}" for exponent in row))


def _tiles(row: list[int]) -> list[Text]:
    """Three lines, the outer ones of half blocks, so that there is a gap between rows."""
    lines = [Text("  "), Text("  "), Text("  ")]
    for exponent in row:
        ground = COLOURS[exponent] if exponent < len(COLOURS) else "#3c3a32"
        number, ink = 2**exponent if exponent else "", "#776e65" if exponent < 3 else "#f9f6f2"
        for line, said, style in zip(
            lines, ("▄" * 8, f"{number:^8}", "▀" * 8), (ground, f"bold {ink} on {ground}", ground)
        ):
            line.append(said, style).append(" ")
    return lines


def hint_in_words(hint: Hint) -> list[str]:
    """A line for each move: its value, and how far it is behind the best one."""
    lines, best = [], hint.values[hint.best]
    for action, (name, value) in enumerate(zip(NAMES, hint.values)):
        if value == float("-inf"):
            lines.append(f"  {name:<5}          -   changes nothing")
        else:
            behind = f"{round(value) - round(best):+,}" if round(value) != round(best) else "as good"
            beside = "the best" if action == hint.best else behind
            lines.append(f"  {name:<5} {value:>10,.0f}   {beside}")
    return [*lines, *textwrap.wrap(games.why(hint), WIDTH)]


def say(sentence: str) -> None:
    """Prints it in lines that fit."""
    print(textwrap.fill(sentence, WIDTH))
