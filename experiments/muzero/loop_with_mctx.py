"""The effect of the search on the whole MuZero loop: jaxzero's loop, and the same with mctx's search.

    python experiments/muzero/loop_with_mctx.py --save      # about ten minutes on two cores

Acting, learning and, where it is on, reanalyse, as `jaxzero train --model learned` runs them; only the search differs.
Rows: CartPole with 2 actions and 16 simulations; with 18 actions (each of the two under nine numbers) and 50
simulations; both without and with half of each minibatch searched anew. Iterations of both alternate in one process;
the result is the ratio of the medians.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp

from jaxzero import environments
from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.muzero.presets import PRESETS
from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import build, policy
from jaxzero.policies.policy_io import SearchInfo
from jaxzero.root.summary import Summary
from jaxzero.runs.run_folder import write_whole
from jaxzero.train import devices
from jaxzero.train.bootstrap_values import with_improved_value
from jaxzero.types import PolicyOutput

try:
    import mctx
except ImportError:
    missing = "loop_with_mctx.py needs mctx, which is not installed: .venv/bin/python -m pip install mctx"
    raise SystemExit(missing) from None

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "muzero_loop_with_mctx.json"
ROWS = (  # actions, simulations, share that is searched anew
    (2, 16, 0.0),
    (2, 16, 0.5),
    (18, 50, 0.0),
    (18, 50, 0.5),
)


def mctx_search(config: Config, environment, model, simulations: int, explore: bool = True):
    """`jaxzero.cli.muzero.setup.policy`, by mctx."""
    floor = functools.partial(mctx.qtransform_completed_by_mix_value, epsilon=config.acting.range_floor)
    considered = min(config.acting.max_considered, simulations)

    def recurrent(params, key, action, embedding):
        step, embedding = model.step(params, jax.random.split(key, len(action)), action, embedding)
        output = mctx.RecurrentFnOutput(
            reward=step.reward, discount=step.discount, prior_logits=step.prior_logits, value=step.value
        )
        return output, embedding

    def search(params, keys, state):
        step, embedding = model.root(params, keys, state)
        out = mctx.gumbel_muzero_policy(
            params,
            keys[0],
            mctx.RootFnOutput(prior_logits=step.prior_logits, value=step.value, embedding=embedding),
            recurrent,
            simulations,
            None if step.legal is None else ~step.legal,
            qtransform=floor,
            max_num_considered_actions=considered,
            gumbel_scale=1.0 if explore else 0.0,
        )
        found = out.search_tree.summary()
        summary = Summary(found.visit_counts, found.visit_probs, found.qvalues, found.value)
        none = jnp.zeros(len(keys), jnp.int32)
        return PolicyOutput(
            action=out.action,
            action_weights=out.action_weights,
            value=found.value,
            tree=None,
            info=SearchInfo(none, none, none, summary),
        )

    return with_improved_value(search)


def many_actions(environment: environments.Environment, count: int) -> environments.Environment:
    """The environment with several numbers for each action."""
    few = environment.num_actions
    step = lambda state, action, key: environment.step(state, action % few, key)
    return environment._replace(id=f"{environment.id}_{count}_actions", num_actions=count, step=step)


def started(config: Config, environment, mesh, search):
    """A loop with compiled programs and a filled replay: a function without arguments that runs one iteration."""
    run = build(config, environment, mesh, search)
    state, step = run.begin(run.params), 0
    while step < 6:  # windows of all rings can be drawn
        acting, replay, _ = run.act(state["learner"].average, state["acting"], state["replay"])
        state, step = state | {"acting": acting, "replay": replay}, step + 1

    def iteration():
        nonlocal state, step
        acting, replay, _ = run.act(state["learner"].average, state["acting"], state["replay"])
        learner, replay, _ = run.update(state["learner"], replay, run.keys(step), jnp.float32(1e-3))
        state, step = {"acting": acting, "replay": replay, "learner": learner}, step + 1
        jax.block_until_ready(state["learner"].steps)

    iteration()
    return iteration


def measured(actions: int, simulations: int, share: float, rounds: int) -> dict:
    """Medians of alternating iterations."""
    own = PRESETS["control"]
    config = dataclasses.replace(
        own,
        acting=dataclasses.replace(own.acting, simulations=simulations),
        learn=dataclasses.replace(own.learn, reanalyse=share),
    )
    environment, mesh = many_actions(environments.cartpole(), actions), devices.mesh()
    loops = {name: started(config, environment, mesh, s) for name, s in (("ours", policy), ("mctx", mctx_search))}
    seconds = {name: [] for name in loops}
    for _ in range(rounds):
        for name, iteration in loops.items():
            began = time.perf_counter()
            iteration()
            seconds[name].append(time.perf_counter() - began)
    steps = config.acting.environments * config.acting.steps
    found = {name: steps / statistics.median(times) for name, times in seconds.items()}
    row = {"actions": actions, "simulations": simulations, "reanalyse": share}
    row |= {f"{name} steps/s": round(x) for name, x in found.items()} | {
        "ratio": round(found["ours"] / found["mctx"], 2)
    }
    print(row, flush=True)
    return row


def main() -> None:
    """Measures all rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true", help="write a new file beside those of the other experiments")
    parser.add_argument("--rounds", type=int, default=15, help="iterations of each")
    given = parser.parse_args()
    devices.all_cores(8)
    rows = [measured(*row, given.rounds) for row in ROWS]
    if given.save:
        file = free_name(RESULTS)
        write_whole(file, json.dumps(circumstances() | {"rows": rows}, indent=1) + "\n")
        print(f"Written to {file}")


if __name__ == "__main__":
    main()
