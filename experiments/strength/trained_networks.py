"""What the networks that come with jaxzero are worth: matches of one of them, as its card tells them.

    python experiments/strength/trained_networks.py --game othello --save
    python experiments/strength/trained_networks.py --game hex_7x7 --games 20 --pairings trained:64,uct:100

Each match is played from openings of four random moves (--opening-plies), with both colours of each. The players are
those of `jaxzero tournament`.
"""

import argparse
import json
import pathlib
from collections.abc import Callable

from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.playing import tournament
from jaxzero.cli.playing.tournament import Config, match, played, points
from jaxzero.cli.training.settings import VALUE_SCALE
from jaxzero.play import arena
from jaxzero.runs.run_folder import write_whole

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "strength"
PAIRINGS = ("raw:trained,random", "raw:trained,uct:1000", "trained:64,uct:1000", "trained:400,uct:10000")


def results_of(config: Config, pairings: list[tuple[str, str]], keep: Callable[[dict], None]) -> None:
    """Points of each pairing's first player, with Wilson's interval; told and kept as they come in."""
    game, players = tournament.prepare(config)
    found = {
        "settings": {
            "game": game.id,
            "games": config.games,
            "openings": config.opening_plies,
            "value_scale": config.value_scale,
        },
        "matches": {},
    }
    different = tournament.different_openings(config, game, config.games)
    tournament.warn_of_repeated_openings(config, game, config.games, different)
    found["about"] = next((one.about for one in players.values() if one.about is not None), None)
    for number, (one, other) in enumerate(pairings):
        result = match(config, game, players[one], players[other], number)(0)
        share, count = points(result) / played(result), played(result)
        low, high = arena.wilson(share, count)
        found["matches"][f"{one},{other}"] = {
            "share": share,
            "interval": [low, high],
            "score": [result.wins, result.draws, result.losses, result.unfinished],
        }
        score = f"+{result.wins} ={result.draws + result.unfinished} -{result.losses}"
        print(f"{one} against {other}: {share:.1%} ({low:.0%} to {high:.0%})  {score}", flush=True)
        keep(circumstances() | found)


def main() -> None:
    """Plays what is asked for, and prints a line for each match."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--game", required=True, help="one that a network comes with: go, hex_7x7, othello, ...")
    parser.add_argument("--pairings", nargs="*", default=PAIRINGS, help="two players each, with a comma between them")
    parser.add_argument("--games", type=int, default=100, help="of each pairing; default: %(default)s")
    parser.add_argument("--opening-plies", type=int, default=4, help="random moves at the start; default: %(default)s")
    parser.add_argument(
        "--value-scale", type=float, default=VALUE_SCALE, help="how much values weigh in searches; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="openings follow from it; default: %(default)s")
    parser.add_argument("--save", action="store_true", help="write the results beside those of the other experiments")
    given = parser.parse_args()
    if given.games < 2 or given.games % 2:
        parser.error(f"--games {given.games}: an even number, for each opening is played with both colours.")
    if not 0 < given.value_scale < float("inf"):
        parser.error(f"--value-scale {given.value_scale:g}: above 0, like {VALUE_SCALE}")
    scaled = "" if given.value_scale == VALUE_SCALE else f"_value_scale_{given.value_scale:g}"
    pairings = [tuple(pairing.split(",", 1)) for pairing in given.pairings]
    players = tuple(dict.fromkeys(player for pairing in pairings for player in pairing))
    config = Config(
        players=players,
        game=given.game,
        games=given.games,
        opening_plies=given.opening_plies,
        value_scale=given.value_scale,
        seed=given.seed,
    )

    def keep(found: dict) -> None:
        if given.save:
            RESULTS.mkdir(exist_ok=True)
            name = found["settings"]["game"]
            write_whole(RESULTS / f"trained_{name}{scaled}.json", json.dumps(found, indent=1, default=str) + "\n")

    results_of(config, pairings, keep)


if __name__ == "__main__":
    main()
