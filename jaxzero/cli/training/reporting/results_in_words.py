"""The results of a run in words: a verdict, and tables of what was measured before and after."""

from typing import Any

from jaxzero.nets import weights

__all__ = ["opponents_in_words", "players_in_words", "tables", "verdict"]


def verdict(game: Any, results: dict, config: Any, before: dict | None = None) -> str:
    """What a run has reached, in a sentence, beside what was measured before; empty where nothing was measured."""
    said, shared = [], f" (draws count {'half' if game.num_players == 2 else 'as shares'})"
    for name, words in opponents_in_words(config).items():
        if name in results:
            low, high = results[name]["interval"]
            was = f", before {before[name]['share']:.0%}" if before and name in before else ""
            said.append(f"{results[name]['share']:.0%} ({low:.0%}-{high:.0%}{was}) of the points against {words}")
    found = f"It makes {' and '.join(said)}{shared}" if said else ""
    if found and game.num_players > 2:
        seats = results["random"]["seats"]
        each = ", ".join(f"{one['share']:.0%}" for one in seats)
        found += f"; {1 / game.num_players:.0%} would be even, and by seat against random players it is {each}"
    few = str(min(config.position_simulations, default=0))
    if few in results:
        mistakes = f"{results[few]['all']:.1%} outcome mistakes with {few} simulations"
        shipped = _shipped(game.id).get(few)
        # Its file holds measurements from when searches mapped values to [0, 1].
        beside = f" (the network that comes with jaxzero, values mapped: {shipped['all']:.1%})" if shipped else ""
        found = f"{found}; {mistakes}{beside}" if found else f"It makes {mistakes}{beside}"
    even = " The games began with two random moves, and some of these openings are lost already." if said else ""
    return found and f"{found}.{even}"


def _shipped(game: str) -> dict:
    """The results of the network that comes with jaxzero for a game; empty if there is none."""
    file = weights.TRAINED / f"{game}.safetensors"
    return (weights.read_about(file).get("results") or {}) if file.is_file() else {}


def opponents_in_words(config: Any) -> dict[str, str]:
    """Who is played against, by the names of the results."""
    return {"random": "a random player", "uct": f"UCT, {config.rollouts:,} rollouts per move"}


def players_in_words(config: Any) -> dict[str, str]:
    """Whose mistakes are counted, by the names of the results."""
    return {"raw": "raw network"} | {str(n): f"{n} simulations" for n in config.position_simulations}


def tables(before: dict, after: dict, config: Any) -> list[tuple[str, list[str], list[list[str]]]]:
    """What was measured before and after: captions, heads and rows."""

    def games(result):
        low, high = result["interval"]
        wins, draws, losses, _ = result["score"]
        return f"{result['share']:.1%} ({low:.0%}-{high:.0%})  +{wins} ={draws} -{losses}"

    opponents, found = opponents_in_words(config), []
    played = [name for name in opponents if name in before and name in after]
    if played:
        found.append(
            (
                f"Points per game after two random moves, ours with {config.simulations} simulations (95 % interval)",
                ["against", "before", "after"],
                [[opponents[name], games(before[name]), games(after[name])] for name in played],
            )
        )
    rows = [
        [words, when, *(f"{x:.1%}" for x in result[name].values())]
        for name, words in players_in_words(config).items()
        if name in before and name in after
        for when, result in (("before", before), ("after", after))
    ]
    if rows:
        found.append(
            (
                "Outcome mistakes on exactly solved positions (the held-out ones were not used for tuning)",
                ["", "", *(name.replace("_", " ") for name in after["raw"])],
                rows,
            )
        )
    return found
