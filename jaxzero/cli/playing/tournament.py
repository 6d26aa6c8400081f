"""A tournament: everybody meets everybody; or a sequential test of two players."""

import contextlib
import dataclasses
import errno
import functools
import itertools
import json
import math
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.markup import escape

from jaxzero import games
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.evaluation_search import provable, sees_decisive
from jaxzero.cli.playing.pairings import (
    Result,
    different_openings,
    games_of,
    match,
    matches,
    played,
    points,
    warn_of_repeated_openings,
    why_not_as_many,
)
from jaxzero.cli.playing.play import resolved
from jaxzero.cli.playing.play_settings import Player as Settings
from jaxzero.cli.playing.play_settings import of_go_alone
from jaxzero.cli.playing.tournament_players import Player, player, repeats, sharing_programs
from jaxzero.cli.playing.tournament_settings import Config, is_trained, openings, read
from jaxzero.compilation_cache import keep_programs
from jaxzero.play import outcome_mistakes, ratings
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import write_whole


def tournament(config: Config, game: Any, players: dict[str, Player], results: dict) -> None:
    """Every player against every other one: a `Result` each, added to `results["pairings"]` as they come in."""
    results["pairings"] = []
    meetings = list(itertools.combinations(range(len(config.players)), 2))
    games = games_of(config, game) // (1 if game.num_players == 2 else 2)  # with three or more both halves have them
    if repeats(players[word] for word in config.players):
        warn_of_repeated_openings(config, game, games, different_openings(config, game, games))
    progress_display.console.print(
        f"{len(meetings)} pairing(s) of {games_of(config, game)} games{why_not_as_many(config, game)}. Each player is "
        "compiled before its first move, which can take half a minute, or longer with dice."
    )
    between, compiled = matches(config, game), set()
    for number, (i, j) in enumerate(meetings, 1):
        one, other = players[config.players[i]], players[config.players[j]]
        run = match(config, game, between, one, other, 0, i, j)
        names = f"{escape(one.name)} against {escape(other.name)}"
        new = [escape(x.name) for x in (one, other) if x.program not in compiled]
        compiled |= {one.program, other.program}
        first = f", compiling {' and '.join(new)} first" if new else ""
        with progress_display.announced(f"Pairing {number} of {len(meetings)}: {names}{first}"):
            result = run(0)
        results["pairings"].append(result)
        stopped = f", {result.unfinished} stopped" if result.unfinished else ""
        progress_display.console.print(f"    +{result.wins} ={result.draws} -{result.losses}{stopped}")


def so_far(config: Config, results: dict) -> str:
    """Which results of a stopped tournament count, as words that follow "Stopped"."""
    if not has_results(results):
        return " before any result; nothing is kept"
    done, meetings = len(results.get("pairings", ())), math.comb(len(config.players), 2)
    if done in (0, meetings):  # another part was interrupted
        return ": the results so far count"
    return f" after {done} of {meetings} pairings, which count; the current one does not"


def has_results(results: dict) -> bool:
    """Whether any part was finished, or at least begun."""
    return any(results.get(part) for part in ("pairings", "sprt", "mistakes"))


def standings(config: Config, pairings: list[Result]) -> ratings.Ratings:
    """The ratings of those who have met others, the strongest first."""
    names = [name for name in config.players if any(name in (p.first, p.second) for p in pairings)]
    table = np.zeros((len(names), len(names), 3), int)
    for p in pairings:
        table[names.index(p.first), names.index(p.second)] = p.wins, p.draws + p.unfinished, p.losses
    anchor = config.anchor if config.anchor in names else names[0]  # it may not have played yet, when stopped
    found = ratings.ratings(names, table, anchor, config.anchor_rating)
    order = np.argsort(-found.elo, kind="stable")
    return ratings.Ratings(tuple(names[i] for i in order), *(field[order] for field in found[1:]))


def show(config: Config, pairings: list[Result], found: ratings.Ratings) -> None:
    """Print the crosstable and the ratings."""
    scores = {(p.first, p.second): points(p) for p in pairings}
    scores |= {(p.second, p.first): played(p) - points(p) for p in pairings}
    labels = [f"{i} {escape(name)}" for i, name in enumerate(found.names, 1)]
    cell = lambda *names: f"{scores[names]:g}" if names in scores else ""
    progress_display.table(
        f"Points in {played(pairings[0])} games each, after {openings(config)} random moves",
        ["", *(str(i) for i in range(1, len(labels) + 1))],
        [[label, *(cell(one, other) for other in found.names)] for label, one in zip(labels, found.names)],
    )
    share = [f"{x:.1%}" for x in found.points / found.games]
    numbers = ([f"{x:.0f}" for x in field] for field in (found.elo, found.low, found.high, found.games))
    columns = ["", "Elo", "from", "to (95 %)", "games", "points"]
    progress_display.table("Ratings", columns, [list(row) for row in zip(labels, *numbers, share)])


# ---------------------------------------------------------------------------------------------------- test, mistakes
def sequential(config: Config, game: Any, players: dict[str, Player], results: dict) -> None:
    """Batches of games until it is decided whether B is stronger; `results["sprt"]` says how it stands."""
    a, b = config.sprt
    may_repeat, warned = repeats(players[x] for x in config.sprt), False
    different = different_openings(config, game, config.max_games) if may_repeat else math.inf
    hypotheses = {name: getattr(config, name) for name in ("elo0", "elo1", "alpha", "beta")}
    run = match(config, game, matches(config, game), players[b], players[a], 1)
    counts, pairs = np.zeros(4, int), np.zeros(5, int)
    for batch in range(config.max_games // config.games):
        first = f"The first games of {escape(b)} against {escape(a)}, both compiled first"
        with progress_display.announced(first) if batch == 0 else contextlib.nullcontext():
            _, _, *new, new_pairs = run(batch)
        counts, pairs, played = counts + new, pairs + new_pairs, (batch + 1) * config.games
        total, test = Result(b, a, *counts.tolist(), pairs.tolist()), ratings.sprt(pairs, **hypotheses)
        results["sprt"] = {"games": played, **total._asdict(), **hypotheses, **test._asdict()}
        share = points(total) / played
        progress_display.console.print(
            f"{played:,} games: {escape(b)} +{total.wins} ={total.draws + total.unfinished} -{total.losses}, "
            f"{share:.1%}, Elo {ratings.elo(share):+.0f}, LLR {test.llr:.2f} ({test.lower:.2f} to {test.upper:.2f})"
        )
        if not warned and played // game.num_players > 2 * different:
            warn_of_repeated_openings(config, game, played, different)
            warned = True
        if test.verdict != "continue":
            h1, names, elos = test.verdict == "accept H1", (escape(b), escape(a)), (config.elo0, config.elo1)
            return progress_display.console.print(
                f"{test.verdict[-2:]} is accepted after {played:,} games: {names[0]} is {'' if h1 else 'not '}stronger "
                f"than {names[1]} by {config.elo1:g} Elo: a difference of {elos[h1]:g} is much likelier than one of "
                f"{elos[not h1]:g}."
            )
    progress_display.console.print(f"Undecided after {played:,} games. For more: --max-games {2 * config.max_games}")


def erring(config: Config, game: Any, players: dict[str, Player], results: dict) -> None:
    """Outcome mistakes of the players that rate moves: `results["mistakes"]`, by phase."""
    positions = outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    n, at_once = len(positions.phase), 143  # large trees for all positions at once would not fit
    parts = [np.arange(begin, begin + at_once) % n for begin in range(0, n, at_once)]  # the last one is filled up
    keys = jax.random.split(jax.random.key(config.seed), len(parts))
    found = results["mistakes"] = {}

    def wrong(policy, params, rows, key):
        state, scores = jax.tree.map(lambda x: x[rows], (positions.state, jnp.asarray(positions.scores)))
        return outcome_mistakes.outcome_mistakes(policy, params, positions._replace(state=state, scores=scores), key)

    for one in (one for one in players.values() if one.rates):
        judge = jax.jit(functools.partial(wrong, one.policy))
        with progress_display.announced(f"Mistakes of {escape(one.name)} on {n:,} solved positions"):
            made = [np.asarray(progress_display.wait(judge(one.params, rows, key))) for rows, key in zip(parts, keys)]
        found[one.name] = outcome_mistakes.rates(np.concatenate(made)[:n], positions)
    columns = [name.replace("_", " ") for name in next(iter(found.values()), ())]
    rows = [[escape(name), *(f"{x:.1%}" for x in rates.values())] for name, rates in found.items()]
    progress_display.table("Outcome mistakes on exactly solved positions", ["", *columns], rows)


# ---------------------------------------------------------------------------------------------------------------- main
def with_game(config: Config) -> Config:
    """The settings; where no game was named, with the game of the first player who has weights."""
    entrants = [read(word, config.simulations) for word in (*config.players, *config.sprt)]
    theirs = (one for one in entrants if one.kind in ("raw", "search") and not is_trained(one))
    file = next((str(one.file) for one in theirs), "")
    default = config.game or ("" if file else "connect_four")
    if default and not config.game:
        of_go_alone(default, config.size, config.komi)
    known = resolved(Settings(game=default, weights=file, size=config.size, komi=config.komi))
    return dataclasses.replace(config, game=known.game, size=known.size, komi=known.komi)


def prepare(config: Config) -> tuple[Any, dict[str, Player]]:
    """The game, and everybody who plays.

    Raises:
        ImportError: the game needs a package that is not installed.
        ValueError: an unknown game, too few players, or what `player` refuses.
        OSError: a file that cannot be read.
    """
    config = with_game(config)
    game = games.by_name(config.game, config.size, config.komi)
    if game.num_players < 2:
        raise ValueError(f"--game {config.game} has {game.num_players} player(s); a tournament needs two or more.")
    if game.num_players > 2 and config.sprt:
        raise ValueError(f"--sprt is for games of two; {config.game} has {game.num_players} players.")
    entrants = {word: read(word, config.simulations) for word in dict.fromkeys((*config.players, *config.sprt))}
    players = {word: player(one, game, config.game, config.value_scale) for word, one in entrants.items()}
    return game, sharing_programs(entrants, players)


def announce(config: Config, game: Any, players: dict[str, Player], about: dict[str, Any]) -> None:
    """Prints the game and the device, and what there is to know of the networks."""
    say = progress_display.console.print
    say(f"[bold]{escape(config.game)}[/] on {progress_display.device()}, jax {jax.__version__}")
    if provable(game) and any(read(word, config.simulations).kind == "search" for word in players):
        seen = ", and see decisive moves (uct does not)" if sees_decisive(game) else ""
        say(f"Searches with a network use --value-scale {config.value_scale:g}, for values from -1 to 1{seen}")
    for word, said in about.items():
        told = type(said.get("step")) is int  # files may come from anywhere
        many = f"{said['step']:,} iterations" if told else "an unknown number of iterations"
        say(f"{escape(word)}: weights after {many} of training")


def main(config: Config) -> None:
    """Plays what is asked for, prints it, and writes it down."""
    keep_programs()
    try:
        config = with_game(config)
        if config.mistakes and config.game != "connect_four":
            raise ValueError(f"--mistakes with {config.game}: the solved positions are of connect_four only.")
        game, players = prepare(config)
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"tournament: {error}")
    settings = dataclasses.asdict(config)
    del settings["json"]  # a path of this machine
    about = {word: one.about for word, one in players.items() if one.about is not None}
    announce(config, game, players, about)
    known = {"settings": settings, "about": about, "decisive_moves": sees_decisive(game)}
    results, stopped = circumstances() | known, False
    try:
        meet = config.players and config.games
        for part, wanted in ((tournament, meet), (sequential, config.sprt), (erring, config.mistakes)):
            if wanted:
                part(config, game, players, results)
    except KeyboardInterrupt:
        stopped = True
        progress_display.console.print(f"Stopped{so_far(config, results)}.")
    if results.get("pairings"):
        found = standings(config, results["pairings"])
        show(config, results["pairings"], found)
        results["ratings"] = {field: list(values) for field, values in found._asdict().items()}
        results["pairings"] = [p._asdict() for p in results["pairings"]]
    if config.json is not None and (has_results(results) or not stopped):
        results["stopped"] = stopped
        try:
            if config.json.exists():  # it appeared since the start
                raise FileExistsError(errno.EEXIST, "File exists")
            write_whole(config.json, json.dumps(results, indent=1, default=str) + "\n")
        except OSError as error:
            sys.exit(f"tournament: --json {config.json}: {error.strerror}. The results are those above.")
        progress_display.console.print(f"Written to {escape(str(config.json))}")
    sys.exit(130 if stopped else 0)


def run(config: Config) -> None:
    """`jaxzero tournament` with these settings."""
    try:
        main(config)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
