"""Evaluation of board games that were learned without the rules: games, exact positions, and what the model knows."""

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.cli.muzero.evaluation import Measure, Tables
from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import Run, policy
from jaxzero.cli.training import evaluation as of_games
from jaxzero.cli.training.reporting import results_in_words
from jaxzero.environments.environment import signed_discount
from jaxzero.play import outcome_mistakes
from jaxzero.play.every_reply import every_reply
from jaxzero.play.tic_tac_toe_positions import tic_tac_toe_positions
from jaxzero.runs import progress_display
from jaxzero.train import devices

__all__ = ["game_measure", "one_step"]

KNOWN = {
    "raw": "policy of the network",
    "learned": "one step by the learned model",
    "true": "one step by the true rules",
}


def game_measure(config: Config, environment: Any, run: Run, mesh: Any) -> Measure:
    """Games against random players and UCT, ratings, and mistakes where exact values are known."""
    del mesh
    game, asked = environment.game, config.evaluate
    settings = types.SimpleNamespace(
        simulations=asked.simulations,
        rollouts=asked.rollouts,
        games=asked.games,
        position_simulations=asked.position_simulations,
    )
    search = lambda simulations: policy(config, environment, run.model, simulations, explore=False)
    positions = known_positions(game)
    key = jax.random.key(config.seed + 1)
    of_game = of_games.evaluation(game, run.model, settings, key, search, positions)
    known = None if positions is None else jax.jit(lambda params: one_step(environment, run, params, positions, key))
    repliers = {"first": True, "second": False} if game.id == "tic_tac_toe" else {}

    def model_knows(params: Any) -> dict[str, float]:
        return {} if known is None else {name: float(x) for name, x in known(params).items()}

    def look(state: dict, step: int) -> tuple[dict, dict[str, float]]:
        average, key = state["learner"].average, jax.random.fold_in(jax.random.key(config.seed + 2), step)
        rating, here = of_game.rate(state["rating"], average, key), devices.on_host(average)
        mistakes = {} if of_game.glance is None else of_game.glance(here)
        told = {f"model/{name}": x for name, x in model_knows(here).items()}
        return state | {"rating": rating}, {"rating/elo": float(rating.elo)} | mistakes | told

    def whole(params: Any, announced: Callable = progress_display.announced) -> dict:
        params = devices.on_host(params)
        results = of_game.whole(params, announced)
        strong = search(max(asked.position_simulations, default=asked.simulations))
        replies = {who: every_reply(game, strong, params, key, first)._asdict() for who, first in repliers.items()}
        return results | ({"model": model_knows(params)} if known else {}) | ({"replies": replies} if replies else {})

    return Measure(
        look=look,
        whole=whole,
        tables=lambda before, after: results_in_words.tables(before, after, settings) + more_tables(before, after),
        verdict=lambda after, before: results_in_words.verdict(game, after, settings, before),
    )


def known_positions(game: Any) -> outcome_mistakes.Positions | None:
    """Positions with exact values, of games that have such."""
    if game.id == "connect_four":
        return outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    return tic_tac_toe_positions(game) if game.id == "tic_tac_toe" else None


def one_step(environment: Any, run: Run, params: Any, positions: Any, key: Any) -> dict[str, Any]:
    """What the network knows and what the model knows, apart.

    Outcome mistakes of the network's policy; of the best move by one step of the learned model, and by one step of the
    true rules, with the values of the same network; and the rewards that the model foretells of moves that win at once,
    and of other moves. Where the true rules make fewer mistakes, it is the dynamics that are wrong.
    """
    game, network, state = environment.game, run.network, positions.state
    scores = jnp.asarray(positions.scores)
    allowed, count = ~jnp.isnan(scores), len(scores)
    sign = jnp.where(allowed, jnp.sign(scores), -2.0)
    wrong = lambda rated: jnp.mean(
        jnp.take_along_axis(sign, jnp.where(allowed, rated, -jnp.inf).argmax(1)[:, None], 1)[:, 0] < sign.max(1)
    )
    see = lambda state: network.represent(params, jax.vmap(environment.observe)(state))
    value = lambda embedding: network.value.decode(network.predict(params, embedding)[1])
    discount = signed_discount(environment)
    seen = see(state)

    def by_model(action: Any) -> tuple:
        after, reward = network.dynamics(params, seen, jnp.full(count, action))
        reward = network.reward.decode(reward)
        return reward + discount * value(after), reward

    def by_rules(action: Any) -> tuple:
        after, outcome = jax.vmap(environment.step, (0, None, None))(state, action, key)
        return outcome.reward + jnp.where(outcome.terminated, 0.0, discount * value(see(after))), outcome.reward

    actions = jnp.arange(game.num_actions)
    (learned, foretold), (true, paid) = (jax.lax.map(step, actions) for step in (by_model, by_rules))
    learned, foretold, true, paid = (x.T for x in (learned, foretold, true, paid))
    wins = allowed & (paid > 0.5)
    return {
        "raw": wrong(network.predict(params, seen)[0]),
        "learned": wrong(learned),
        "true": wrong(true),
        "wins_foretold": jnp.mean(foretold, where=wins),
        "others_foretold": jnp.mean(foretold, where=allowed & ~wins),
    }


def more_tables(before: dict, after: dict) -> Tables:
    """What the model knows, and every reply."""
    found = []
    both = [("before", before), ("after", after)]
    if "model" in after:
        head = ["", *KNOWN.values(), "predicted reward of wins", "of other moves"]
        rows = [
            [
                when,
                *(f"{told[name]:.1%}" for name in KNOWN),
                f"{told['wins_foretold']:.3f}",
                f"{told['others_foretold']:.3f}",
            ]
            for when, results in both
            if (told := results.get("model"))
        ]
        found.append(("What the network and the model know: outcome mistakes on the same positions", head, rows))
    if "replies" in after:
        head = ["", "moves", "wins", "draws", "losses"]
        rows = [
            [f"{when}, it moves {who}", *(f"{told[name]:,}" for name in ("positions", "wins", "draws", "losses"))]
            for when, results in both
            for who, told in results.get("replies", {}).items()
        ]
        found.append(("Against every legal reply", head, rows))
    return found
