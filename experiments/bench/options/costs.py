"""The part `costs` of `options.py`: how each option changes the time of a search, when the network costs nothing."""

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from bench import hash_world
from bench.against_mctx import sizes, tree_depths
from bench.measure import Keep, Progress, compiled, interleaved, markdown

import jaxzero as jz

__all__ = ["costs", "options"]

PLAIN = "plain PUCT"


class Option(NamedTuple):
    """How to search with an option, and the option to compare with."""

    policy: Callable[[int, int], Any]  # (simulations, actions) -> policy
    beside: str = PLAIN


def options() -> dict[str, Option]:
    """By name, each after the one it is compared with."""

    def puct(**how: Any) -> Callable[[int, int], Any]:
        return lambda simulations, actions: plain(hash_world.model(actions), simulations, **how)

    def ending(rule: jz.Rule | None = None) -> Callable[[int, int], Any]:
        return lambda simulations, actions: plain(with_ends(hash_world.model(actions)), simulations, rule=rule)

    def chance(often: int) -> Callable[[int, int], Any]:
        return lambda simulations, actions: plain(with_chance(hash_world.model(actions), often), simulations)

    def gumbel(**how: Any) -> Callable[[int, int], Any]:
        return lambda simulations, actions: jz.gumbel(hash_world.model(actions), simulations, **how)

    def kept(simulations: int, actions: int) -> Any:
        build = lambda model: plain(model, simulations)
        return jz.options.with_evaluations_kept(build, hash_world.model(actions))

    rule = jz.puct()
    noise = jz.dirichlet(0.3, 0.25)
    unheeded = lambda tree, remaining: jz.decided(tree, remaining) & (remaining < 0)
    kinds = {
        "visits": jz.options.virtual_visits(),
        "mean": jz.options.virtual_mean(),
        "loss": jz.options.virtual_loss(),
    }
    found = {
        PLAIN: Option(puct()),
        "dirichlet noise": Option(puct(explore=noise)),
        "shaped noise": Option(puct(explore=jz.root.shaped_dirichlet(10.83, 0.25))),
        "root temperature": Option(puct(explore=jz.root.root_temperature(1.1))),
        "forced playouts": Option(puct(explore=noise, root_rule=jz.forced_playouts(rule)), "dirichlet noise"),
        "target=solved_visits": Option(puct(target=jz.root.solved_visits(rule))),
        "target=pruned_visits": Option(puct(target=jz.root.pruned_visits(rule))),
        "reduced first play": Option(puct(rule=jz.puct(1.25, jz.search.raw(jz.search.reduced_parent(0.2))))),
        "games that end": Option(ending()),
        "avoid_proven": Option(ending(jz.avoid_proven(rule)), "games that end"),
        "seek_proof": Option(ending(jz.options.seek_proof(rule)), "games that end"),
        "stop=decided": Option(puct(stop=jz.decided)),
        "decided, asked but not heeded": Option(puct(stop=unheeded)),
        **{f"parallel(8), virtual {name}": Option(puct(simulate=jz.parallel(8, how))) for name, how in kinds.items()},
        "transpositions": Option(puct(simulate=jz.transpositions())),
        "gumbel": Option(gumbel()),
        "gumbel in rounds": Option(gumbel(rounds=jz.options.virtual_mean()), "gumbel"),
        "evaluations kept, first search": Option(kept),
        "chance, nowhere": Option(chance(0)),
        "chance, every other node": Option(chance(2)),
        "COMPACT": Option(puct(layout=jz.COMPACT)),
    }
    return found


def plain(model: jz.Model, simulations: int, **how: Any) -> Any:
    noise = {} if "explore" in how else {"dirichlet_fraction": 0.0}
    return jz.alphazero(model, simulations, act=jz.most_visited, **noise, **how)


def with_ends(model: jz.Model, one_in: int = 32) -> jz.Model:
    """The world with positions that end the game, won, drawn or lost."""

    def described(step: jz.Step, state: tuple, ends: jax.Array) -> tuple:
        result = (hash_world.scramble(state[0] + 1) % 3).astype(jnp.float32) - 1
        discount, value = jnp.where(ends, 0, step.discount), jnp.where(ends, 0, step.value)
        reward = jnp.where(ends, result, step.reward)
        return step._replace(terminal=ends, discount=discount, reward=reward, value=value), state

    def root(params: Any, keys: Any, state: tuple) -> tuple:
        return described(*model.root(params, keys, state), jnp.zeros(len(state[0]), bool))

    def step(params: Any, keys: Any, action: jax.Array, state: tuple) -> tuple:
        said, state = model.step(params, keys, action, state)
        return described(said, state, hash_world.scramble(state[0]) % one_in == 0)

    return jz.Model(root, step)


def with_chance(model: jz.Model, often: int) -> jz.Model:
    """The world in which one node in `often` is a chance node (0: none); the model tells this for every node."""

    def root(params: Any, keys: Any, state: tuple) -> tuple:
        said, state = model.root(params, keys, state)
        return said._replace(chance=jnp.zeros(len(state[0]), bool)), state

    def step(params: Any, keys: Any, action: jax.Array, state: tuple) -> tuple:
        said, state = model.step(params, keys, action, state)
        there = hash_world.scramble(state[0]) % max(often, 1) == (0 if often else 1)
        return said._replace(chance=there), state

    return jz.Model(root, step)


def costs(config: Any, keep: Keep) -> tuple[dict, str]:
    """Time with the option divided by time without; medians of alternating runs."""
    progress, rows = Progress([_weight(*sizes(shape)) for shape in config.shapes]), []
    keep({"rows": rows})
    for shape in config.shapes:
        progress.next(shape)
        found = _shape(shape, config)
        rows += found
        print(f"\n{_table(shape, found)}\n", flush=True)  # at once: the next shape may take long
    return {"rows": rows}, (
        "Ratios of the median times, with a network that costs nothing; plain PUCT over itself: 1. An option that "
        "changes what is searched also changes the depth of the walks. `advance` is one call, in units of one "
        "simulation of plain PUCT."
    )


def _table(shape: str, rows: list[dict]) -> str:
    columns = [shape, "beside", "times its time", "by the fastest runs", "middle half of the rounds", "mean depth"]
    cells = [
        [r["option"], r["beside"], r["ratio"], r["ratio_fastest"], f"{r['low']:.2f}-{r['high']:.2f}",
         "" if r["mean_depth"] is None else r["mean_depth"]]
        for r in rows
    ]  # fmt: skip
    return markdown(columns, cells)


def _weight(batch: int, simulations: int, actions: int) -> float:
    return 30 + batch * simulations / 400


def _wanted(name: str, config: Any) -> bool:
    return not config.only or any(word in name for word in config.only)


def _shape(shape: str, config: Any) -> list[dict]:
    batch, simulations, actions = sizes(shape)
    known = options()
    names = {name for name in known if _wanted(name, config)}
    names |= {PLAIN} | {known[name].beside for name in names}
    given = (), jax.random.split(jax.random.key(0), batch), hash_world.roots(batch)
    runs, beside, depths = {}, {}, {}
    for number, name in enumerate(name for name in known if name in names):
        print(f"        compiling {number + 1} of {len(names)}: {name}", flush=True)
        run = compiled(known[name].policy(simulations, actions), *given)
        runs[name], beside[name], depths[name] = run, known[name].beside, tree_depths(run().tree)["mean_depth"]
    for name, (run, other, depth) in _after_a_move(given, simulations, actions, config).items():
        runs[name], beside[name], depths[name] = run, other, depth
    times = interleaved(runs, config.seconds, most=201)
    rows = []
    for name, timing in times.items():
        other = times[beside[name]]
        unit = simulations if name == "advance" else 1
        each = sorted(unit * mine / its for mine, its in zip(timing.runs, other.runs))
        low, _, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
        rows.append({
            "shape": shape, "option": name, "beside": beside[name], "ratio": unit * timing.seconds / other.seconds,
            "ratio_fastest": unit * min(timing.runs) / min(other.runs), "low": low, "high": high,
            "ms": timing.seconds * 1e3, "mean_depth": depths[name], "rounds": len(each),
        })  # fmt: skip
    return rows


def _after_a_move(given: tuple, simulations: int, actions: int, config: Any) -> dict[str, tuple]:
    """`advance`, and the searches of the next position, which begin with the results of the previous one."""
    params, keys, state = given
    model, found = hash_world.model(actions), {}
    out = jax.jit(plain(model, simulations))(*given)
    following = params, keys, hash_world.follow(out.action, state)
    if _wanted("advance", config):
        found["advance"] = compiled(jz.advance, out.tree, out.action), PLAIN, None
    for name in ("evaluations kept, next search", "statistics kept, next search"):
        if not _wanted(name, config):
            continue
        if name.startswith("evaluations"):
            policy = jz.options.with_evaluations_kept(lambda model: plain(model, simulations), model)
        else:
            policy = plain(model, simulations, capacity=2 * simulations + 1)
        first = jax.jit(policy)(*given)
        tree = jax.jit(jz.advance)(first.tree, first.action)
        fresh = compiled(plain(model, simulations), *following)
        again = compiled(policy, *following, tree)
        depth = [tree_depths(run().tree)["mean_depth"] for run in (fresh, again)]
        found.setdefault("plain PUCT, next search", (fresh, "plain PUCT, next search", depth[0]))
        found[name] = again, "plain PUCT, next search", depth[1]
    return found
