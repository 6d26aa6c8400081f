"""The parts of `benchmark.py` without mctx: overhead beside a network, and a tree in NumPy."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench import numpy_tree
from bench.against_mctx import tree_depths
from bench.measure import Keep, Progress, compiled, interleaved, markdown

import jaxzero as jz
from jaxzero import games, models, nets

__all__ = ["numpy", "numpy_and_jaxzero", "overhead", "positions"]


# --------------------------------------------------------------------------------------------------------- overhead
def overhead(config: Any, keep: Keep) -> tuple[dict, str]:
    """The share of a search's time that is neither the network nor the game's step, on Connect Four."""
    game = games.from_pgx("connect_four")
    rules = sorted({"gumbel" if rule == "gumbel" else "puct" for rule in config.rules}, reverse=True)
    plan = [(kind, rule, batch) for kind in config.networks for rule in rules for batch in config.batches]
    progress, rows = Progress([10 + batch / (20 if kind == "resnet" else 200) for kind, _, batch in plan]), []
    keep({"rows": rows})
    for kind, rule, batch in plan:
        progress.next(f"{kind}, {rule}, {batch} games")
        rows.append({"network": kind, "rule": rule, "games": batch} | _overhead_row(game, kind, rule, batch, config))
    keys = "search_ms", "model_ms", "network_ms", "game_ms", "mean_depth", "deepest"
    text = markdown(
        ["network", "rule", "games", "overhead", *(key.replace("_", " ") for key in keys)],
        [[r["network"], r["rule"], r["games"], f"{r['overhead']:.0%}", *(r[key] for key in keys)] for r in rows],
    )
    text += (
        f"\n\n{config.simulations} simulations. Model: network and game together. Overhead: 1 - (S + 1) x model / "
        "search. The times are of one search, and of S + 1 calls of the others in a loop."
    )
    return {"rows": rows}, text


def _overhead_row(game: games.Game, kind: str, rule: str, batch: int, config: Any) -> dict:
    key = jax.random.key(0)
    net, params = nets.mlp(game, key=key) if kind == "mlp" else nets.resnet(game, channels=32, blocks=3, key=key)
    model = models.perfect(game, net)
    # The game alone: its observation is used, or XLA would remove it.
    idle = models.perfect(game, lambda _, seen: (jnp.zeros((len(seen), game.num_actions)), jnp.mean(seen, (1, 2, 3))))
    simulations = config.simulations
    policy = jz.gumbel(model, simulations) if rule == "gumbel" else jz.alphazero(model, simulations)
    keys = jax.random.split(key, batch)
    states = jax.block_until_ready(jax.jit(lambda: positions(game, keys))())
    program = jax.jit(policy).lower(params, keys, states).compile()

    def steps(model: jz.Model, params: Any, keys: Any, states: Any) -> Any:
        step, embedding = model.root(params, keys, states)

        def turn(i: Any, carry: tuple) -> tuple:
            embedding, total = carry
            action = jnp.full(batch, i % game.num_actions, jnp.int32)
            step, embedding = model.step(params, keys, action, embedding)
            return embedding, total + step.value + jnp.sum(jnp.where(step.legal, step.prior_logits, 0), 1)

        return jax.lax.fori_loop(0, simulations, turn, (embedding, step.value))

    def evaluations(params: Any, observation: Any) -> Any:
        def turn(_: Any, total: Any) -> Any:  # depends on the iteration before, or XLA would move it out of the loop
            logits, value = net(params, observation + 1e-9 * total[:, None, None, None])
            return value + jnp.sum(logits, 1)

        return jax.lax.fori_loop(0, simulations + 1, turn, jnp.zeros(batch))

    times = interleaved({
        "search": lambda: jax.block_until_ready(program(params, keys, states)),
        "model": compiled(lambda *given: steps(model, *given), params, keys, states),
        "network": compiled(evaluations, params, jax.vmap(game.observe)(states)),
        "game": compiled(lambda *given: steps(idle, *given), params, keys, states),
    }, config.seconds / 2, least=config.runs)  # fmt: skip
    row = {f"{name}_ms": timing.seconds * 1e3 for name, timing in times.items()}
    depths = tree_depths(program(params, keys, states).tree)
    runs = {name: timing.runs for name, timing in times.items()}
    return row | {"overhead": 1 - row["model_ms"] / row["search_ms"]} | depths | {"runs": runs}


def positions(game: games.Game, keys: jax.Array) -> Any:
    """After six random plies: too early for a game of Connect Four to be over."""

    def ply(i: jax.Array, states: Any) -> Any:
        legal = jax.vmap(game.legal)(states)
        own = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
        action = jax.vmap(lambda key, mask: jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)))(own, legal)
        return jax.vmap(game.step)(states, action, own)

    return jax.lax.fori_loop(0, 6, ply, jax.vmap(game.init)(keys))


# ------------------------------------------------------------------------------------------------------------ numpy
STATES = 1 << 16
VALUES = np.random.default_rng(0).uniform(-1, 1, STATES).astype(np.float32)  # the stub network: a table


def follow(state: Any, action: Any) -> Any:
    return (state * 31 + action + 7) & (STATES - 1)


def numpy(config: Any, keep: Keep) -> tuple[dict, str]:
    """Simulations per second with unnormalised uniform priors: every prior is 1, so trees are wide and shallow."""
    simulations, actions = config.numpy_simulations, config.numpy_actions
    values = VALUES.tolist()
    prior = np.ones(actions, np.float32)  # every prior is the same: made once
    evaluate = lambda state: (prior, values[state])
    contestants: dict = {
        name: functools.partial(numpy_tree.search, evaluate, follow, 1, simulations, score)
        for name, score in (("numpy", numpy_tree.as_it_reads), ("numpy, tuned", numpy_tree.tuned))
    }
    batches = dict.fromkeys(contestants, 1)
    print("Compiling, then running in turn", flush=True)
    outs = {}
    for batch in config.numpy_batches:
        policy = jz.alphazero(stub(actions), simulations, rule=wide(), dirichlet_fraction=0.0)
        given = (), jax.random.split(jax.random.key(0), batch), 1 + jnp.arange(batch)
        name = f"jaxzero, B = {batch}"
        contestants[name] = outs[batch] = compiled(policy, *given)
        batches[name] = batch
    times = interleaved(contestants, config.seconds, least=config.runs)
    mine = tree_depths(outs[config.numpy_batches[0]]().tree)
    same = bool(numpy_and_jaxzero(min(simulations, 500), min(actions, 30)).all())
    rows = []
    keep({"rows": rows})
    for name, batch in batches.items():
        per_game = simulations / times[name].seconds
        row = {"tree": name, "games": batch, "per_game": per_game, "total": per_game * batch}
        rows.append(row | {"us_per_read": 1e6 / row["total"], "runs": times[name].runs})
    for row in rows:
        row["ratio"], row["ratio_tuned"] = row["total"] / rows[0]["total"], row["total"] / rows[1]["total"]
    text = markdown(
        ["tree", "reads/s per game", "reads/s in total", "us per read", "against NumPy, per read", "against it tuned"],
        [[r["tree"], r["per_game"], r["total"], r["us_per_read"], r["ratio"], r["ratio_tuned"]] for r in rows],
    )
    text += (
        f"\n\n{simulations} simulations, {actions} actions; mean depth {mine['mean_depth']:.1f}, deepest "
        f"{mine['deepest']}. Same visits at the root in a small case: {'yes' if same else 'NO'}."
    )
    return {"rows": rows, "same_visits": same, **mine}, text


def wide() -> jz.Rule:
    """W/(1+N) + √ΣN · P/(1+N), every legal P being 1."""
    ones = lambda logits: jnp.where(jnp.isneginf(logits), -jnp.inf, 1.0)
    return jz.puct(1.0, jz.search.with_virtual_zero())._replace(prepare=ones)


def stub(actions: int) -> jz.Model:
    table = jnp.asarray(VALUES)

    def describe(state: jax.Array) -> tuple:
        value = table[state]
        zeros = jnp.zeros_like(value)
        return jz.Step(jnp.zeros((len(state), actions)), value, reward=zeros, discount=zeros - 1), state

    return jz.Model(lambda params, keys, state: describe(state),
                    lambda params, keys, action, state: describe(follow(state, action)))  # fmt: skip


def numpy_and_jaxzero(simulations: int, actions: int, batch: int = 4) -> np.ndarray:
    """Where the two searches have the same visits at the root, `[batch, actions]`."""
    prior = np.ones(actions, np.float32)
    evaluate = lambda state: (prior, float(VALUES[state]))
    roots = [numpy_tree.search(evaluate, follow, 1 + game, simulations) for game in range(batch)]
    policy = jz.alphazero(stub(actions), simulations, rule=wide(), dirichlet_fraction=0.0)
    out = jax.jit(policy)((), jax.random.split(jax.random.key(0), batch), 1 + jnp.arange(batch))
    return np.stack([root.visits for root in roots]) == np.asarray(out.info.summary.visits)
