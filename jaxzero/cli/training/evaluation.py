"""Evaluation of a network: games against a random player and UCT, and mistakes on exactly solved positions."""

import functools
import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

import jaxzero as jz
from jaxzero import models
from jaxzero.cli.training.reporting.console import say
from jaxzero.cli.training.settings import VALUE_SCALE
from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.models.decisive_moves import with_decisive_moves
from jaxzero.nets import weights
from jaxzero.play import arena, match_programs, outcome_mistakes
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import keep_aside, write_whole
from jaxzero.search.qvalues import completed_by_mix_value

__all__ = [
    "Evaluation",
    "Rating",
    "draws",
    "evaluation",
    "provable",
    "seeing_decisive",
    "sees_decisive",
    "store",
    "stored",
    "tables",
    "to_win",
    "verdict",
]

RATED_BY, RATED_WITH = 64, 32  # games between neighbours, simulations per move in them


class Evaluation(NamedTuple):
    """The measurements of a network; each compiles at its first call, and plays the same openings each time.

    Attributes:
        whole: `(params, announced) -> results`, before and after a run; each part is announced.
        glance: `params -> metrics`, now and then while it learns: outcome mistakes with the fewest simulations; None
            where no positions with exact values are known.
        rate: `(rating, params, key) -> rating`: a match against the parameters that were rated last. It cannot be
            jitted as a whole.
    """

    whole: Callable[..., dict]
    glance: Callable[[Any], dict[str, float]] | None
    rate: Callable[..., Any]


class Rating(NamedTuple):
    """How strong a run has become: the sum of its gains from match to match.

    Attributes:
        elo: against the network that the run began with. It sums matches between neighbours, so errors add up.
        params: the parameters that were rated last.
    """

    elo: Any
    params: Any


def to_win(
    game: Any, model: Any, simulations: int, considered: int | None = None, value_scale: float = VALUE_SCALE
) -> Callable:
    """The search that networks are judged with: it does not explore, and proves what can be proven.

    It sees decisive moves where the game names them (`seeing_decisive`).

    In games for two without chance, values count as they are. mctx maps them to [0, 1] at each node first; then noise
    between nearly equal moves weighs as much as a win. The gain is in experiments/strength/README.md. For other games
    this was not tried, and a win may pay less than 1 there (a third in backgammon).

    Args:
        game: its rules.
        model: what the tree is made of.
        simulations: per move.
        considered: moves at the root; default 16, or as many as there are simulations.
        value_scale: c_scale (Danihelka et al. 2022), for games whose values count as they are. A win pays 1.
    """
    fixed: dict[str, Any] = dict(max_considered=considered, gumbel_scale=0.0)
    if provable(game):
        fixed |= dict(qvalues=completed_by_mix_value(value_scale, rescale_values=False), wrap=jz.avoid_proven)
    model = seeing_decisive(game, model)
    return with_listed_outcomes(lambda model: jz.gumbel(model, simulations, **fixed), model, game)


def provable(game: Any) -> bool:
    """Whether a search can prove the values of positions: in games for two players without chance.

    An edge of a search without nodes for chance keeps the one outcome that was drawn, which proves nothing.
    """
    return game.num_players == 2 and not draws(game)


def sees_decisive(game: Any) -> bool:
    """Whether our searches by the rules see decisive moves: where the game names them (`models.decisive_moves`)."""
    return game.decisive is not None and provable(game)


def seeing_decisive(game: Any, model: Any) -> Any:
    """The model that our searches by the rules look ahead with: it sees decisive moves where the game names them."""
    return with_decisive_moves(game, model) if sees_decisive(game) else model


def draws(game: Any) -> bool:
    """Whether steps of a game draw from their key, or its outcomes are listed."""
    return game.outcomes is not None or depends_on_key(game.step, jax.eval_shape(game.init, jax.random.key(0)))


def evaluation(
    game: Any, model: Any, config: Any, key: jax.Array, search: Callable | None = None, positions: Any = None
) -> Evaluation:
    """Builds the measurements for networks of a game.

    Args:
        game: a `jaxzero.games.Game`.
        model: the rules with a network, or what was learned of them.
        config: the `Evaluate` settings.
        key: for the openings and the random players.
        search: `simulations -> policy` that plays; None: see `to_win`.
        positions: with exact values; None: those of Connect Four, and of no other game.
    """
    search = functools.partial(to_win, game, model) if search is None else search
    match, ours = match_programs.between(game), match_programs.program(search(config.simulations))
    uct = with_listed_outcomes(lambda model: jz.uct(model, config.rollouts), models.rollout(game), game)
    keys = jax.random.split(key, max(config.games // game.num_players, 1))
    policies = {"random": arena.random_player(game), "uct": uct} if config.games else {}
    opponents = {name: match_programs.program(policy) for name, policy in policies.items()}
    thinkers = {}
    if positions is None and game.id == "connect_four":
        positions = outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    if positions is not None:
        players = {"raw": arena.raw_network(model)} | {str(n): search(n) for n in config.position_simulations}
        thinkers = {
            name: jax.jit(functools.partial(outcome_mistakes.outcome_mistakes, player, positions=positions, key=key))
            for name, player in players.items()
        }

    named = opponents_in_words(config) | players_in_words(config)

    compiled = set()

    def whole(params: Any, announced: Callable = progress_display.announced) -> dict:
        results = {}
        for name, opponent in opponents.items():
            first = "" if name in compiled else ", compiled first"
            compiled.add(name)
            with announced(f"  {len(keys) * game.num_players} games against {named[name]}{first}"):
                seats = match((ours, opponent), (params, None), keys)
            results[name] = _in_numbers(seats)
            if game.num_players > 2:
                by_seat = [jax.tree.map(lambda x, i=i: x[i], seats) for i in range(game.num_players)]
                results[name]["seats"] = [_in_numbers(one) for one in by_seat]
        for name, wrong in thinkers.items():
            with announced(f"  Mistakes on exact positions, {named[name]}"):
                results[name] = outcome_mistakes.rates(progress_display.wait(wrong(params)), positions)
        return results

    def glance(params: Any) -> dict[str, float]:
        few = {"raw", str(min(config.position_simulations, default=0))} & set(thinkers)
        return {f"mistakes/{name}": float(progress_display.wait(thinkers[name](params)).mean()) for name in sorted(few)}

    rater, rated_match = match_programs.program(search(RATED_WITH)), match_programs.between(game, opening_plies=4)

    def rate(rating: Rating, params: Any, key: jax.Array) -> Rating:
        keys = jax.random.split(key, RATED_BY // game.num_players)
        points = np.asarray(rated_match((rater, rater), (params, rating.params), keys).points)
        if jax.process_count() > 1:  # each host has played; one host's result counts, because rounding may differ
            points = multihost_utils.broadcast_one_to_all(points)
        return rated(rating, params, points)

    @jax.jit
    def rated(rating: Rating, params: Any, points: jax.Array) -> Rating:
        count, even = points.size + 2, 1 / game.num_players  # two virtual games with an even score:
        total = points.sum() + 2 * even  # so a rating is never infinite
        kept = jax.tree.map(jnp.copy, params)  # a copy of its own: the learner's buffers are donated at the next step
        return Rating(rating.elo + 400 * jnp.log10(total / (count - total) * (game.num_players - 1)), kept)

    return Evaluation(whole, glance if thinkers else None, rate)


def _in_numbers(seats: arena.Seats) -> dict[str, Any]:
    """The points of games, as a results file holds them."""
    share = float(jnp.mean(seats.points))
    interval = arena.wilson(share, seats.points.size)
    return {"share": share, "interval": interval, "score": [int(x.sum()) for x in seats.score]}


def verdict(game: Any, results: dict, config: Any, before: dict | None = None) -> str:
    """What a run has reached, in a sentence, beside what was measured before; empty where nothing was measured."""
    said, draws = [], f" (draws count {'half' if game.num_players == 2 else 'as shares'})"
    for name, words in opponents_in_words(config).items():
        if name in results:
            low, high = results[name]["interval"]
            was = f", before {before[name]['share']:.0%}" if before and name in before else ""
            said.append(f"{results[name]['share']:.0%} ({low:.0%}-{high:.0%}{was}) of the points against {words}")
    found = " and ".join(said)
    found = f"It makes {found}{draws if found else ''}" if found else ""
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
    return {"random": "a random player", "uct": f"UCT, {config.rollouts:,} rollouts per move"}


def players_in_words(config: Any) -> dict[str, str]:
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


def stored(folder: pathlib.Path) -> dict:
    """Earlier results of the run. A damaged file is reported and renamed, and counts as none."""
    file = folder / "results.json"
    try:
        results = json.loads(file.read_bytes())
        digest = results.pop("sha256", None)
        known = results.keys() & {"before", "after"}  # some kinds of training have no "before"
        sound = known and all(isinstance(results[name], dict | None) for name in known)
        if digest in (None, _digest(results)) and sound:
            return results
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        pass
    if jax.process_index() == 0:
        say(f"{file} is damaged: measuring again. The damaged file is now {keep_aside(file)}.")
    return {}


def _digest(results: dict) -> str:
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()


def store(folder: pathlib.Path, **results: Any) -> dict:
    """Add to the run's results; returns them all. All hosts have the same results, and one of them writes the file."""
    results = stored(folder) | results
    if jax.process_index() == 0:
        text = json.dumps(results | {"sha256": _digest(json.loads(json.dumps(results)))}, indent=2)
        write_whole(folder / "results.json", text + "\n")
    return results
