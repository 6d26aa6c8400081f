"""2048: one step of a learned model of chance, compared with one step by the true rules.

    jaxzero train --game 2048 --model stochastic --budget.minutes 60 --folder runs/2048_stochastic
    python experiments/muzero/one_step_2048.py runs/2048_stochastic --save

Moves are chosen in four ways with one network: by its policy; by the values of its afterstates; by one step of its
model, over all codes; and by its values of true boards after one step of the rules, over all tiles. Printed are the
scores of whole games by each; and, for positions of such games, how the model's rewards, values after the step, and
sums correlate with the true ones over the legal moves.
"""

import argparse
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import saved_rows

from jaxzero import environments, nets
from jaxzero.cli.circumstances import circumstances
from jaxzero.games.rules_2048 import outcomes_2048, slides
from jaxzero.models.chance import select_rows
from jaxzero.runs import metrics

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "muzero_one_step_2048.json"
ENVIRONMENT = environments.by_name("2048")
GAME, OUTCOMES, GAMMA, ACTIONS = ENVIRONMENT.game, outcomes_2048(), ENVIRONMENT.discount, 4
WAYS = "policy", "afterstates", "model", "rules"
EVERY = 50


def said_by_model(network: Any, params: Any, seen: jax.Array) -> dict[str, jax.Array]:
    """The network's estimates for the four moves of boards `[B, ...]`, without the rules, `[B, 4]` each."""
    rows, codes = len(seen), network.codes
    embedding = network.represent(params, seen)
    four = jnp.repeat(embedding, ACTIONS, 0)
    after = network.afterstate(params, four, jnp.tile(jnp.arange(ACTIONS), rows))
    chances, worth = network.foresee(params, after)
    every = jnp.tile(jnp.eye(codes), (rows * ACTIONS, 1))
    following, paid = network.dynamics(params, jnp.repeat(after, codes, 0), every)
    value = network.value.decode(network.predict(params, following)[1])
    mean = lambda x: (jax.nn.softmax(chances) * x.reshape(-1, codes)).sum(-1).reshape(rows, ACTIONS)
    return {
        "policy": network.predict(params, embedding)[0],
        "afterstates": network.value.decode(worth).reshape(rows, ACTIONS),
        "reward": mean(network.reward.decode(paid)),
        "value": mean(value),
    }


def by_rules(network: Any, params: Any, states: Any) -> dict[str, jax.Array]:
    """The rewards of the four moves, and the expected value of the boards after them, `[B, 4]` each."""

    def of_move(state: Any, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        each = jax.vmap(lambda outcome: OUTCOMES.step(state, action, outcome, jax.random.key(0)))
        boards = each(jnp.arange(OUTCOMES.count))
        _, output = network.predict(params, network.represent(params, jax.vmap(GAME.observe)(boards)))
        value = network.value.decode(output)
        expected = (OUTCOMES.probabilities(state, action) * jnp.where(boards.over, 0.0, value)).sum()
        return slides(state.cells)[1][action], expected

    moves = jax.vmap(of_move, (None, 0))
    reward, value = jax.vmap(moves, (0, None))(states, jnp.arange(ACTIONS))
    return {"reward": reward, "value": value}


def opinions(network: Any, params: Any, states: Any) -> dict[str, dict[str, jax.Array]]:
    """Both of these, and what each way of choosing a move maximises."""
    seen = jax.vmap(GAME.observe)(states)
    model, rules = said_by_model(network, params, seen), by_rules(network, params, states)
    sums = [x["reward"] + GAMMA * x["value"] for x in (model, rules)]
    ways = dict(zip(WAYS, (model["policy"], model["afterstates"], *sums), strict=True))
    return {"model": model, "rules": rules, "ways": ways}


def played(network: Any, params: Any, way: str, games: int, key: Any) -> tuple[np.ndarray, list[Any]]:
    """Scores of whole games, and their positions at every `EVERY`th move."""

    @jax.jit
    def step(params: Any, states: Any, key: Any) -> Any:
        legal = jax.vmap(GAME.legal)(states)
        action = jnp.argmax(jnp.where(legal, opinions(network, params, states)["ways"][way], -jnp.inf), -1)
        following = jax.vmap(GAME.step)(states, action, jax.random.split(key, games))
        return select_rows(states.over, states, following)

    states = jax.vmap(GAME.init)(jax.random.split(key, games))
    score, kept, n = np.zeros(games), [], 0
    while not bool(states.over.all()):
        over = np.asarray(states.over)
        if n % EVERY == EVERY // 2:
            kept.append(states)
        states, n = step(params, states, jax.random.fold_in(key, n)), n + 1
        score += np.where(over, 0, np.asarray(states.paid))
    return score, kept


def correlation(said: np.ndarray, true: np.ndarray, legal: np.ndarray) -> float:
    """The numbers of each position's legal moves, minus their mean."""
    share = legal / legal.sum(1, keepdims=True)
    apart = [np.where(legal, x - (x * share).sum(1, keepdims=True), 0).ravel() for x in (said, true)]
    return float(np.corrcoef(*apart)[0, 1])


def compared(network: Any, params: Any, positions: list[Any]) -> dict[str, float]:
    """The correlation of the model with the rules over the moves, and the size of values."""
    ask = jax.jit(lambda params, states: (opinions(network, params, states), jax.vmap(GAME.legal)(states)))
    told = [jax.tree.map(lambda x, on=~some.over: np.asarray(x)[on], ask(params, some)) for some in positions]
    said, legal = jax.tree.map(lambda *x: np.concatenate(x), *told)
    rows = {name: correlation(said["model"][name], said["rules"][name], legal) for name in ("reward", "value")}
    rows |= {f"sum of {way}": correlation(said["ways"][way], said["ways"]["rules"], legal) for way in WAYS[1:3]}
    spread = np.nanstd(np.where(legal, said["rules"]["value"], np.nan), 1).mean()
    return rows | {
        "true boards' value, mean": float(said["rules"]["value"][legal].mean()),
        "its deviation over moves": float(spread),
        "model's value, mean": float(said["model"]["value"][legal].mean()),
    }


def main() -> None:
    """Scores, correlations, and with --save a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", type=pathlib.Path, help="folders of runs of --model stochastic")
    parser.add_argument("--games", type=int, default=100, help="games for each way of choosing a move")
    parser.add_argument("--save", action="store_true", help="write the results beside those of the other experiments")
    given = parser.parse_args()
    for folder in given.runs:
        network, params, _ = nets.load_learned(folder / "weights.safetensors")
        found = {"steps": metrics.read(folder)[-1]["acting/steps"]}
        for way in WAYS:
            score, positions = played(network, params, way, given.games, jax.random.key(2048))
            error = score.std(ddof=1) / np.sqrt(given.games)
            found[way] = {"score": round(float(score.mean())), "standard error": round(float(error))}
            print(f"{folder.name}: moves by {way}: {found[way]}", flush=True)
        found["model beside rules"] = compared(network, params, positions)
        print(f"{folder.name}: {found['model beside rules']}", flush=True)
        if given.save:
            row = saved_rows.add(RESULTS, folder.name, found | circumstances())
            print(f"Written to {RESULTS}, row {row}", flush=True)


if __name__ == "__main__":
    main()
