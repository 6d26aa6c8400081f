"""Evaluation of a network: games against a random player and UCT, and mistakes on exactly solved positions."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

import jaxzero as jz
from jaxzero import models
from jaxzero.cli.evaluation_search import to_win
from jaxzero.cli.training.reporting.results_in_words import opponents_in_words, players_in_words
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.play import arena, match_programs, outcome_mistakes
from jaxzero.runs import progress_display

__all__ = ["Evaluation", "Rating", "evaluation"]

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


def evaluation(
    game: Any, model: Any, config: Any, key: jax.Array, search: Callable | None = None, positions: Any = None
) -> Evaluation:
    """Builds the measurements for networks of a game.

    Args:
        game: a `jaxzero.games.Game`.
        model: the rules with a network, or what was learned of them.
        config: the `Evaluate` settings.
        key: for the openings and the random players.
        search: `simulations -> policy` that plays; None: `to_win` of `jaxzero.cli.evaluation_search`.
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
