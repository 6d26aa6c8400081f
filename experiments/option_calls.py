"""The parts `lanes` and `rounds` of `options.py`: fewer, larger calls of the network, and their price in strength."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Progress, compiled, interleaved, markdown
from option_players import Counter, match, resnet, shown, trained

import jaxzero as jz
from jaxzero import games, models
from jaxzero.mcts.rounds import round_sizes

__all__ = ["lanes", "rounds"]

VIRTUAL = {"visits": jz.virtual_visits, "mean": jz.virtual_mean, "loss": jz.virtual_loss}


# ------------------------------------------------------------------------------------------------------------ lanes
def searching(model: jz.Model, simulations: int, lanes: int, virtual: str = "visits") -> Any:
    """A search for play, with one leaf at a time or several."""
    how = {} if lanes == 1 else {"simulate": jz.parallel(lanes, VIRTUAL[virtual]())}
    return jz.alphazero(model, simulations, dirichlet_fraction=0.0, act=jz.most_visited, **how)


def lanes(config: Any) -> tuple[dict, str]:
    """One game; the simulations of K lanes wait for the network together."""
    game, net, params = resnet(config.channels, config.blocks)
    plan = [(1, "none")] + [(k, kind) for k in sorted(set(config.lanes)) if k > 1 for kind in config.virtual]
    matches = 0 if config.run is None else len(plan) - 1
    progress, rows, runs = Progress([1] * (len(plan) + 1) + [3] * matches), [], {}
    keys = jax.random.split(jax.random.key(0), 1)
    given = params, keys, jax.vmap(game.init)(keys)
    for k, kind in plan:
        progress.next(f"compiling K = {k}, virtual {kind}")
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
    columns = ["K", "virtual", "calls", "simulations/s", "times K = 1"]
    cells = [[r["lanes"], r["virtual"], r["calls"], r["per_second"], r["ratio"]] for r in rows]
    text = f"{config.channels} x {config.blocks} network, {game.id}, one game, {config.lane_simulations} simulations"
    if config.run is not None:
        _play_lanes(rows[1:], progress, config)
        columns.append(f"Elo beside K = 1 (95 %), {config.games} games")
        cells = [cell + [shown(row["match"]) if "match" in row else ""] for cell, row in zip(cells, rows)]
    return {"rows": rows}, f"{text}\n\n{markdown(columns, cells)}"


def _play_lanes(rows: list[dict], progress: Progress, config: Any) -> None:
    game, net, params = trained(config.run)
    model = models.perfect(game, net)
    alone = searching(model, config.lane_simulations, 1)
    for row in rows:
        progress.next(f"{config.games} games, K = {row['lanes']}, virtual {row['virtual']}, against K = 1")
        ours = searching(model, config.lane_simulations, row["lanes"], row["virtual"])
        row["match"] = match(game, ours, alone, params, config)
        print(f"        {shown(row['match'])}", flush=True)


# ----------------------------------------------------------------------------------------------------------- rounds
def rounds(config: Any) -> tuple[dict, str]:
    """Gumbel search: the simulations of one halving round share calls of the network."""
    game, net, params = resnet(config.channels // 2, config.blocks // 2)
    progress = Progress([1, 1, 1] + ([5] if config.run else []))
    progress.next("compiling")
    simulations = config.round_simulations
    considered = min(16, simulations, game.num_actions)

    def policies(model: jz.Model, scale: float) -> dict[str, Any]:
        how = dict(max_considered=considered, gumbel_scale=scale)
        together = jz.gumbel(model, simulations, rounds=jz.virtual_mean(), **how)
        return {"one after another": jz.gumbel(model, simulations, **how), "in rounds": together}

    batch = config.round_games
    keys = jax.random.split(jax.random.key(0), batch)
    given = params, keys, midgame(game, keys, 8)
    programs = {
        name: jax.jit(policy).lower(*given).compile()
        for name, policy in policies(models.perfect(game, net), 1.0).items()
    }
    counter = Counter()
    _, together = policies(models.perfect(game, counter.counted(net)), 1.0).values()
    calls = {"one after another": 1 + simulations, "in rounds": counter.during(jax.jit(together), *given)[1]}
    progress.next("running in turn")
    runs = {name: lambda p=p: jax.block_until_ready(p(*given)) for name, p in programs.items()}
    times = interleaved(runs, config.seconds)
    one, together = (timing.seconds for timing in times.values())
    progress.next(f"{config.kept_positions} positions")
    result = {"games": batch, "considered": considered, "calls": calls, "ms": [one * 1e3, together * 1e3]}
    result |= {"call_sizes": list(round_sizes(considered, simulations)), "ratio": together / one}
    result |= _differences(game, params, programs, config)
    text = markdown(
        ["games", "simulations", "considered", "calls, one after another", "calls, in rounds", "times its time"],
        [[batch, simulations, considered, *calls.values(), result["ratio"]]],
    ) + (
        f"\n\nThe action differs on {result['different_actions']} of {result['positions']} positions (same keys), the "
        f"visits on {result['different_visits']}; the improved policies differ by {result['policy_distance']:.3f} on "
        "average (half the sum of the absolute differences)."
    )
    if config.run is not None:
        progress.next(f"{config.games} games, rounds against one after another")
        game, net, params = trained(config.run)
        other, ours = policies(models.perfect(game, net), 0.0).values()
        result["match"] = match(game, ours, other, params, config)
        text += f"\n\nElo of rounds (95 %), {config.games} games: {shown(result['match'])}"
    return result, text


def midgame(game: games.Game, keys: jax.Array, plies: int) -> Any:
    """After that many random moves; games that are over begin anew."""

    def ply(i: jax.Array, states: Any) -> Any:
        own = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
        legal = jax.vmap(game.legal)(states)
        action = jax.vmap(lambda key, mask: jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)))(own, legal)
        after = jax.vmap(game.step)(states, action, own)
        over = jax.vmap(game.terminal)(after)
        mix = lambda new, old: jnp.where(over.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        return jax.tree.map(mix, jax.vmap(game.init)(own), after)

    return jax.jit(lambda: jax.lax.fori_loop(0, plies, ply, jax.vmap(game.init)(keys)))()


def _differences(game: games.Game, params: Any, programs: dict, config: Any) -> dict:
    """How often the two disagree, with the same keys, from the first move to the twenty-fourth."""
    batch, found = config.round_games, []
    for number in range(-(-config.kept_positions // batch)):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(2), number), batch)
        state = midgame(game, keys, number % 24)
        one, other = (program(params, keys, state) for program in programs.values())
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
