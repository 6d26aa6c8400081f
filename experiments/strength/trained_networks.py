"""The strength of the networks that come with jaxzero: the matches on a network's card.

    python experiments/strength/trained_networks.py --game othello --save
    python experiments/strength/trained_networks.py --game hex_7x7 --games 20 --pairings trained:64,uct:100

Each match is played from openings of four random moves (--opening-plies; one in tic-tac-toe), with both colours of
each. The players are those of `jaxzero tournament`.
"""

import argparse
import json
import pathlib
from collections.abc import Callable

from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.evaluation_search import sees_decisive
from jaxzero.cli.playing import tournament
from jaxzero.cli.playing.pairings import different_openings, match, matches, played, points, warn_of_repeated_openings
from jaxzero.cli.playing.play_settings import usual_opening_plies
from jaxzero.cli.playing.tournament_players import Player, repeats
from jaxzero.cli.playing.tournament_settings import Config
from jaxzero.cli.training.settings import VALUE_SCALE
from jaxzero.games import Game
from jaxzero.play import arena
from jaxzero.runs.run_folder import write_whole

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "strength"
PAIRINGS = ("raw:trained,random", "raw:trained,uct:1000", "trained:64,uct:1000", "trained:400,uct:10000")


def results_of(
    config: Config, game: Game, players: dict[str, Player], pairings: list[list[str]], keep: Callable[[dict], None]
) -> None:
    """Points of each pairing's first player, with Wilson's interval; printed and saved as they come in."""
    found = {
        "settings": {
            "game": game.id,
            "games": config.games,
            "openings": config.opening_plies,
            "seed": config.seed,
            "value_scale": config.value_scale,
            "decisive_moves": sees_decisive(game),
        },
        "matches": {},
    }
    if any(repeats((players[one], players[other])) for one, other in pairings):
        warn_of_repeated_openings(config, game, config.games, different_openings(config, game, config.games))
    between = matches(config, game)
    found["about"] = next((one.about for one in players.values() if one.about is not None), None)
    for number, (one, other) in enumerate(pairings):
        result = match(config, game, between, players[one], players[other], number)(0)
        share, count = points(result) / played(result), played(result)
        low, high = arena.wilson(share, count)
        found["matches"][f"{one},{other}"] = {
            "share": share,
            "interval": [low, high],
            "score": [result.wins, result.draws, result.losses, result.unfinished],
            "pairs": [int(n) for n in result.pairs],  # number of openings with 0, 1/2, 1, 3/2 and 2 points
        }
        score = f"+{result.wins} ={result.draws + result.unfinished} -{result.losses}"
        print(f"{one} against {other}: {share:.1%} ({low:.0%} to {high:.0%})  {score}", flush=True)
        keep(circumstances() | found)


def main() -> None:
    """Plays the pairings, and prints a line for each match."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", required=True, help="a game with a network in jaxzero: go, hex_7x7, othello, ...")
    parser.add_argument(
        "--pairings",
        nargs="*",
        default=PAIRINGS,
        help="two players each, with a comma between them, like raw:trained,uct:1000",
    )
    parser.add_argument("--games", type=int, default=100, help="games of each pairing; default: %(default)s")
    parser.add_argument("--opening-plies", type=int, help="random moves at the start; default: 4, in tic-tac-toe 1")
    parser.add_argument(
        "--value-scale", type=float, default=VALUE_SCALE, help="scale of values in searches; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the openings; default: %(default)s")
    parser.add_argument(
        "--save", action="store_true", help="write the results beside those of the other experiments, into a new file"
    )
    given = parser.parse_args()
    if given.games < 2 or given.games % 2:
        parser.error(f"--games {given.games}: use an even number, as each opening is played with both colours.")
    if given.opening_plies is not None and given.opening_plies < 0:
        parser.error(f"--opening-plies {given.opening_plies}: 0 or more")
    if not 0 < given.value_scale < float("inf"):
        parser.error(f"--value-scale {given.value_scale:g}: above 0, like {VALUE_SCALE}")
    scaled = "" if given.value_scale == VALUE_SCALE else f"_value_scale_{given.value_scale:g}"
    pairings = [pairing.split(",", 1) for pairing in given.pairings]
    alone = [pairing for pairing in given.pairings if "," not in pairing]
    if alone:
        parser.error(f"--pairings {alone[0]}: two players, with a comma between them, like trained:64,uct:1000")
    players = tuple(dict.fromkeys(player for pairing in pairings for player in pairing))
    config = Config(
        players=players,
        game=given.game,
        games=given.games,
        opening_plies=usual_opening_plies(given.game) if given.opening_plies is None else given.opening_plies,
        value_scale=given.value_scale,
        seed=given.seed,
    )

    try:
        game, contestants = tournament.prepare(config)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    file = free_name(RESULTS / f"trained_{game.id}{scaled}.json")
    if given.save:  # reserve the name now, before another process takes it
        RESULTS.mkdir(exist_ok=True)
        file.touch(exist_ok=False)

    def keep(found: dict) -> None:
        if given.save:
            write_whole(file, json.dumps(found, indent=1, default=str) + "\n")

    print(f"{game.id}, {given.games} games of each pairing; unscaled values, c_scale {given.value_scale:g}")
    try:
        results_of(config, game, contestants, pairings, keep)
    finally:
        if given.save and not file.stat().st_size:  # ended before the first match did: the name is free again
            file.unlink()
    if given.save:
        print(f"Written to {file}")


if __name__ == "__main__":
    main()
