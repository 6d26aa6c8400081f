"""A match against another program that speaks the Go Text Protocol."""

import dataclasses
import random
import signal
import sys
import time

from jaxzero import games
from jaxzero.cli.evaluation_search import draws
from jaxzero.cli.playing.gtp_match.program import Failed, Program, Refused
from jaxzero.cli.playing.gtp_match.results import Game, points, result, save, summary, writing
from jaxzero.cli.playing.gtp_match.settings import Config, opening_plies
from jaxzero.cli.playing.play import engine, limits, resolved
from jaxzero.cli.playing.play_settings import komi
from jaxzero.cli.training.reporting.console import warnings_said
from jaxzero.compilation_cache import keep_programs
from jaxzero.play import scoring
from jaxzero.play.analysis import hopeless
from jaxzero.play.engine import Engine
from jaxzero.play.gtp import sgf
from jaxzero.play.notation import actions_by_name, family, has_board, names
from jaxzero.runs import progress_display

COLOURS = "black", "white"
STOPPED = "it was stopped"

Ending = tuple[str, str]  # a result as SGF has it, and how it came about


def check_fits(game: games.Game) -> None:
    """Raises a ValueError if a game cannot be played through the protocol."""
    why = ""
    if game.num_players != 2:
        why = f"it has {game.num_players} players, and the protocol knows two"
    elif draws(game):
        why = "it draws at random, and the protocol cannot tell the other program what was drawn"
    elif not has_board(game._replace(draw=None)):  # a picture of one's own says nothing of the rules
        why = "it is not a game of stones on a board"
    if why:
        raise ValueError(f"--game {game.id}: {why}. jaxzero tournament plays it among players of its own.")


def play(thinker: Engine, other: Program, config: Config, ours: int, opening: list[int], number: int = 0) -> Game:
    """One game with us as black (0) or white (1); `number` is that of the game, see `Engine`."""
    thinker.clear(number=number)
    start(thinker, other, config)
    ending: Ending | None = None
    while ending is None and not thinker.over() and len(thinker.moves) < config.max_moves:
        ply = len(thinker.moves)
        if ply < len(opening):
            ending = make(thinker, other, opening[ply])
        elif thinker.to_move() == ours:
            ending = move(thinker, other, config)
        else:
            ending = answered(thinker, other, config, len(opening))
    return Game(ours, thinker.moves.copy(), *(ending or judged(thinker, other, config)))


def move(thinker: Engine, other: Program, config: Config) -> Ending | None:
    """Our move; an ending if we resign, or if the other refuses it."""
    action = thinker.think(**limits(config.player))
    if hopeless(thinker.report(1), config.player.resign):
        return f"{'WB'[thinker.to_move()]}+R", "we resigned"
    return make(thinker, other, action)


def make(thinker: Engine, other: Program, action: int) -> Ending | None:
    """Makes a move, and tells the other program; an ending if it refuses.

    Its rules may forbid what ours allow, like positional superko. Neither side has lost then, so the game is void.
    Nor if it does not know the swap of Hex. Some programs of Othello (GRhino) have no word for a pass, and pass by
    themselves.
    """
    called = names(thinker.game)[action]
    try:
        other.ask(f"play {COLOURS[thinker.to_move()]} {called}")
    except Refused as error:
        if len(thinker.moves) < 2 and called != "swap-pieces":  # no other rules differ so early
            raise Failed(f"{error}: it may play another game, or on another board") from error
        if called != "pass" or family(thinker.game) == "go":
            return "Void", f"the other refused a move that is legal here ({' '.join(str(error).split())})"
    thinker.play(action)
    return None


def answered(thinker: Engine, other: Program, config: Config, opened: int) -> Ending | None:
    """The other's move; an ending if it resigns, or makes no legal move. `opened`: moves of the opening."""
    turn, called = thinker.to_move(), names(thinker.game)
    if config.player.ponder:
        thinker.ponder()
    word = other.ask(f"genmove {COLOURS[turn]}").lower()
    if word == "resign":
        return f"{'WB'[turn]}+R", "the other resigned"
    try:
        thinker.play(actions_by_name(called).get(word, -1))
    except ValueError:
        if len(thinker.moves) < opened + 2:  # its first move
            legal = [name for name, ok in zip(called, thinker.legal()) if ok][:4]
            here = f"{thinker.game.id} here ({', '.join(legal)} ...)"
            raise Failed(f"it answered {word}, which is no move in {here}: it may play another game") from None
        return f"{'WB'[turn]}+F", "the other made an illegal move"
    return None


def judged(thinker: Engine, other: Program, config: Config) -> Ending:
    """The result of a finished or stopped game: the other program's, or ours if it does not give one."""
    if not thinker.over():
        return "Void", f"stopped after {len(thinker.moves)} moves"
    own = scoring.final_score(thinker.game, thinker.position(), thinker.first, komi(config.player) or 0.0)
    passes = [names(thinker.game)[action] for action in thinker.moves[-2:]] == ["pass", "pass"]
    if family(thinker.game) == "go" and not passes:  # the other may not know why, so its score says nothing
        return own, "ended by the rules, by a repetition or at the limit of moves"
    try:
        theirs = sgf.result_of(other.ask("final_score"))
    except Refused:
        theirs = None
    if theirs is None:
        return own, "scored by us"
    return theirs, "both agree" if theirs[0] == own[0] else f"we score it {own}"


def start(thinker: Engine, other: Program, config: Config) -> None:
    """Begins a new game in the other program.

    The size is sent for Go and Hex, whose boards have many; komi for Go only. Othello programs know neither.
    """
    points = komi(config.player)
    if points is not None or family(thinker.game) == "hex":
        other.ask(f"boardsize {thinker.game.observation_shape[0]}")
    other.ask("clear_board")
    if points is not None:
        other.ask(f"komi {points:g}")


def openings(thinker: Engine, config: Config, number: int) -> list[int]:
    """Random moves, without passes: the same for both games of a pair."""
    draw, passes = random.Random(f"{config.player.seed} {number}"), {"pass", "swap-pieces"}
    called, actions = names(thinker.game), []
    thinker.clear(number=0)
    for _ in range(opening_plies(config)):
        free = [a for a, ok in enumerate(thinker.legal()) if ok and called[a] not in passes]
        if not free:
            break
        actions.append(draw.choice(free))
        thinker.play(actions[-1])
    return actions


def main(config: Config) -> None:
    """Plays the games, and saves each."""
    keep_programs()
    try:
        config = dataclasses.replace(config, player=resolved(config.player))
        config = dataclasses.replace(config, opening_plies=opening_plies(config))  # as the game of the weights has it
        with warnings_said():
            thinker, words = engine(config.player, config.player.size, config.player.komi)
        check_fits(thinker.game)
    except (ValueError, ImportError) as error:
        sys.exit(f"match: {error}")
    print(
        f"{config.games} games of {thinker.game.id}: {words}, against {config.opponent}, "
        f"on {progress_display.device()}."
    )
    try:
        other = Program(config.opponent, config.patience)
    except Failed as error:
        sys.exit(f"match: {error}.")
    opponent, played, problem = config.opponent, [], ""
    try:
        opponent = prepared(config, thinker, other)
        play_all(config, thinker, other, words, opponent, played)
    except Failed as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = STOPPED
        print()
    finally:
        try:
            thinker.rest()  # it may still ponder if the other resigned or failed; a thread must not outlive the program
        finally:
            other.close()
    end(config, played, words, opponent, problem)


def prepared(config: Config, thinker: Engine, other: Program) -> str:
    """Makes the folder, and compiles; returns the other's name."""
    with progress_display.announced(f"Asking the other program for its name, for up to {config.patience:g} s"):
        opponent = other.introduce()
    with writing(config):
        config.folder.mkdir(parents=True, exist_ok=True)
    with progress_display.announced("Compiling the search"):
        thinker.warm_up()
    return opponent


def play_all(config: Config, thinker: Engine, other: Program, words: str, opponent: str, played: list[Game]) -> None:
    """Plays the games of a match, and adds each to those that were played."""
    began = time.monotonic()
    for number in range(config.games):
        opening = openings(thinker, config, number // 2)
        game = play(thinker, other, config, number % 2, opening, number)
        played.append(game)
        save(config, thinker, game, number, opponent)
        result(config, played, words, opponent)
        left = (time.monotonic() - began) / len(played) * (config.games - len(played))
        print(
            f"{number + 1:3}/{config.games}  we are {COLOURS[game.ours]}  {game.result:8} {game.how}; "
            f"{sum(points(g) or 0 for g in played):g} points so far, {left / 60:.0f} min left",
            flush=True,
        )


def end(config: Config, played: list[Game], words: str, opponent: str, problem: str) -> None:
    """Saves and prints the results; ends the command if the match did not come to its end."""
    if played:
        try:
            result(config, played, words, opponent)
        except Failed as error:
            problem = str(error)
        print(summary(config, played, words, opponent))
    if problem:
        words = f"match: the match ended after {len(played)} of {config.games} games: {problem}."
        if problem != STOPPED:
            sys.exit(words)
        print(words, file=sys.stderr)
        sys.exit(130)  # the shells' status for Ctrl-C


def run(config: Config) -> None:
    """`jaxzero match` with these settings."""
    handler = signal.getsignal(signal.SIGINT)  # shells make background jobs ignore it
    signal.signal(signal.SIGTERM, handler if callable(handler) else signal.default_int_handler)
    try:
        main(config)
    except KeyboardInterrupt:
        print("match: stopped. The finished games are in the folder.", file=sys.stderr)
        sys.exit(130)
