"""The parts `lanes` and `rounds` of `options.py`: fewer, larger calls of the network, and their cost in strength."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bench.measure import Keep, Progress, compiled, interleaved, markdown
from bench.options.networks_and_matches import Counter, match, resnet, shown, trained

import jaxzero as jz
from jaxzero import games, models
from jaxzero.models.chance import select_rows

__all__ = ["lanes", "rounds"]

VIRTUAL = {"visits": jz.options.virtual_visits, "mean": jz.options.virtual_mean, "loss": jz.options.virtual_loss}


# ------------------------------------------------------------------------------------------------------------ lanes
def searching(model: jz.Model, simulations: int, lanes: int, virtual: str = "visits") -> Any:
    """A search for play, with one leaf at a time or several."""
    how = {} if lanes == 1 else {"simulate": jz.parallel(lanes, VIRTUAL[virtual]())}
    return jz.alphazero(model, simulations, dirichlet_fraction=0.0, act=jz.most_visited, **how)


def lanes(config: Any, keep: Keep) -> tuple[dict, str]:
    """One game; K lanes share each call of the network."""
    plan = [(1, "none")] + [(k, kind) for k in sorted(set(config.lanes)) if k > 1 for kind in config.virtual]
    matches = 0 if config.run is None else len(plan) - 1
    progress = Progress([1] * (len(plan) + 1) * len(config.lane_networks) + [3] * matches)
    found = {}
    keep({"networks": found})
    for size in config.lane_networks:
        found[size] = _time_lanes(size, plan, progress, config)
    columns = ["K", "virtual", "calls"] + [f"{size}: simulations/s | times K = 1" for size in found]
    cells = []
    for number, (k, kind) in enumerate(plan):
        rows = [rows[number] for rows in found.values()]
        cells.append([k, kind, rows[0]["calls"]] + [f"{r['per_second']:,.0f} | {r['ratio']:.2f}" for r in rows])
    text = f"Connect Four, one game, {config.lane_simulations} simulations, residual networks"
    result = {"networks": found}
    if config.run is not None:
        result["matches"] = _play_lanes(plan[1:], progress, config)
        columns.append(f"Elo beside K = 1 (95 %), {config.games} games")
        cells = [cell + [shown(match)] for cell, match in zip(cells, [None, *result["matches"]])]
    return result, f"{text}\n\n{markdown(columns, cells)}"


def _time_lanes(size: str, plan: list, progress: Progress, config: Any) -> list[dict]:
    """Calls, and simulations per second, with one network."""
    game, net, params = resnet(size)
    rows, runs, keys = [], {}, jax.random.split(jax.random.key(0), 1)
    given = params, keys, jax.vmap(game.init)(keys)
    for k, kind in plan:
        progress.next(f"compiling {size}, K = {k}, virtual {kind}")
        counter = Counter()
        build = lambda net, k=k, kind=kind: searching(models.perfect(game, net), config.lane_simulations, k, kind)
        runs[k, kind] = compiled(build(net), *given)
        _, calls = counter.during(jax.jit(build(counter.counted(net))), *given)
        rows.append({"lanes": k, "virtual": kind, "calls": calls})
    progress.next("running in turn")
    times = interleaved(runs, config.seconds)
    for row in rows:
        took = times[row["lanes"], row["virtual"]].seconds
        row["per_second"], row["ratio"] = config.lane_simulations / took, times[1, "none"].seconds / took
    return rows


def _play_lanes(plan: list, progress: Progress, config: Any) -> list[dict]:
    game, net, params = trained(config.run)
    model, found = models.perfect(game, net), []
    alone = searching(model, config.lane_simulations, 1)
    for k, kind in plan:
        progress.next(f"{config.games} games, K = {k}, virtual {kind}, against K = 1")
        ours = searching(model, config.lane_simulations, k, kind)
        found.append({"lanes": k, "virtual": kind} | match(game, ours, alone, params, config))
        print(f"        {shown(found[-1])}", flush=True)
    return found


# ----------------------------------------------------------------------------------------------------------- rounds
def rounds(config: Any, keep: Keep) -> tuple[dict, str]:
    """Gumbel search: the simulations of a halving round share calls of the network."""
    plan = [(name, size) for name in config.round_games_of for size in config.round_networks]
    progress = Progress([3] * len(plan) + ([5] if config.run else []))
    rows = []
    keep({"rows": rows})
    for name, size in plan:
        progress.next(f"{name}, network {size}")
        rows.append({"game": name, "network": size} | _time_rounds(*resnet(size, name), config))
    result, batch, simulations = {"rows": rows}, config.round_games, config.round_simulations
    columns = ["game", "network", "considered", "calls", "in rounds", "times as fast", "other action", "distance"]
    cells = [
        [r["game"], r["network"], r["considered"], *r["calls"], r["times_as_fast"],
         f"{r['different_actions']} of {r['positions']}", r["policy_distance"]] for r in rows
    ]  # fmt: skip
    text = (
        f"{batch} games, {simulations} simulations; actions are compared with the same keys; distance: of the improved "
        f"policies, half the sum of the absolute differences\n\n{markdown(columns, cells)}"
    )
    if config.run is not None:
        progress.next(f"{config.games} games, rounds against one after another")
        game, net, params = trained(config.run)
        other, ours = _policies(models.perfect(game, net), config, 0.0)
        result["match"] = match(game, ours, other, params, config)
        text += f"\n\nElo of rounds (95 %), {config.games} games of {game.id}: {shown(result['match'])}"
    return result, text


def _policies(model: jz.Model, config: Any, scale: float) -> list[Any]:
    """One simulation after another, and in rounds."""
    how = dict(max_considered=min(16, config.round_simulations), gumbel_scale=scale)
    alone = jz.gumbel(model, config.round_simulations, **how)
    return [alone, jz.gumbel(model, config.round_simulations, rounds=jz.options.virtual_mean(), **how)]


def _time_rounds(game: games.Game, net: Any, params: Any, config: Any) -> dict:
    """Both ways in turn, in one game with one network."""
    keys = jax.random.split(jax.random.key(0), config.round_games)
    given = params, keys, midgame(game, keys, 8)
    programs = [jax.jit(policy).lower(*given).compile() for policy in _policies(models.perfect(game, net), config, 1.0)]
    runs = {name: lambda p=p: jax.block_until_ready(p(*given)) for name, p in zip(("one", "rounds"), programs)}
    one, together = (timing.seconds for timing in interleaved(runs, config.seconds).values())
    calls = []
    for number in range(2):
        counter = Counter()
        policy = _policies(models.perfect(game, counter.counted(net)), config, 1.0)[number]
        calls.append(counter.during(jax.jit(policy), *given)[1])
    considered = min(16, config.round_simulations, game.num_actions)
    return {
        "games": config.round_games,
        "considered": considered,
        "calls": calls,
        "ms": [one * 1e3, together * 1e3],
        "times_as_fast": one / together,
        **_differences(game, params, programs, config),
    }


def midgame(game: games.Game, keys: jax.Array, plies: int) -> Any:
    """Positions after this many random moves; games that are over begin anew."""

    def ply(i: jax.Array, states: Any) -> Any:
        own = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
        legal = jax.vmap(game.legal)(states)
        action = jax.vmap(lambda key, mask: jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)))(own, legal)
        after = jax.vmap(game.step)(states, action, own)
        over = jax.vmap(game.terminal)(after)
        return select_rows(over, jax.vmap(game.init)(own), after)

    return jax.jit(lambda: jax.lax.fori_loop(0, plies, ply, jax.vmap(game.init)(keys)))()


def _differences(game: games.Game, params: Any, programs: list, config: Any) -> dict:
    """How often the two disagree, with the same keys, from the first move to the twenty-fourth."""
    batch, found = config.round_games, []
    for number in range(-(-config.kept_positions // batch)):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(2), number), batch)
        state = midgame(game, keys, number % 24)
        one, other = (program(params, keys, state) for program in programs)
        visits = one.info.summary.visits != other.info.summary.visits
        distance = jnp.abs(one.action_weights - other.action_weights).sum(-1) / 2
        found.append(np.stack([one.action != other.action, visits.any(-1), distance]))
    actions, visits, distance = np.concatenate(found, 1)
    return {
        "positions": len(actions),
        "different_actions": int(actions.sum()),
        "different_visits": int(visits.sum()),
        "policy_distance": float(distance.mean()),
    }
