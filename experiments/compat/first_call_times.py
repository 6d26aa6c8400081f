"""mctx, the front and the native policies compared in small searches: the cost of the first call.

    python experiments/compat/first_call_times.py             # ten minutes on two CPU cores
    python experiments/compat/first_call_times.py --save      # and write results/compat/small-searches-<date>.json

All run in one process, in turn; call times are medians. The first call includes compiling. "tree"
returns the whole search tree from the jitted policy; the other rows return the action and its weights.
"""

import dataclasses
import itertools
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import tyro

import jaxzero as jz
from jaxzero.compat import mctx as front

try:
    import mctx
except ImportError:
    missing = "first_call_times.py needs mctx, which is not installed: .venv/bin/python -m pip install mctx"
    raise SystemExit(missing) from None

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from bench.measure import circumstances, geometric_mean, interleaved, save  # noqa: E402

LIBRARIES = {"mctx": mctx, "front": front}
WIDTH = 64  # of the model's one layer
SHAPES = list(itertools.product((1, 16, 128), (16, 50), (4, 18)))  # games, simulations, actions
POLICIES = ("muzero_policy", "gumbel_muzero_policy", "stochastic_muzero_policy")
NATIVE = {"muzero_policy": jz.muzero, "gumbel_muzero_policy": jz.gumbel}


@dataclasses.dataclass(frozen=True)
class Config:
    """What is measured, and how long."""

    seconds: float = 1.5
    """Seconds for each row, after the first calls."""
    quick: bool = False
    """One shape for each policy."""
    save: bool = False
    """Write the rows, with hardware and versions; nothing is overwritten."""


def models(library, num_actions):
    """A `recurrent_fn`, and the two functions of Stochastic MuZero."""

    def after(params, action, embedding):
        return jnp.tanh(embedding @ params + action[:, None] / num_actions)

    def step(params, key, action, embedding):
        x = after(params, action, embedding)
        discount = jnp.full_like(x[:, 0], 0.97)
        output = library.RecurrentFnOutput(
            reward=x[:, 0], discount=discount, value=x[:, 1], prior_logits=x[:, -num_actions:]
        )
        return output, x

    def decide(params, key, action, embedding):
        x = after(params, action, embedding)
        return library.DecisionRecurrentFnOutput(chance_logits=x[:, :4], afterstate_value=x[:, 1]), x

    def happen(params, key, outcome, embedding):
        output, x = step(params, key, outcome, embedding)
        fields = dict(value=output.value, reward=output.reward, discount=output.discount)
        return library.ChanceRecurrentFnOutput(action_logits=output.prior_logits, **fields), x

    return [step], [decide, happen]


def program(library, policy, shape, with_tree):
    """A jitted search with its arguments; a call waits for the result."""
    batch, simulations, num_actions = shape
    plain, stochastic = models(library, num_actions)
    functions = stochastic if policy == "stochastic_muzero_policy" else plain

    def run(params, key, embedding):
        logits = embedding[:, -num_actions:]
        root = library.RootFnOutput(prior_logits=logits, value=embedding[:, 1], embedding=embedding)
        out = getattr(library, policy)(params, key, root, *functions, simulations)
        return out if with_tree else (out.action, out.action_weights)

    return called(run, batch)


def native_program(policy, shape, with_tree):
    """The same search by a policy of jaxzero."""
    batch, simulations, num_actions = shape

    def root(params, key, embedding):
        return step_of(embedding, jnp.zeros(batch), jnp.ones(batch))

    def step(params, key, action, embedding):
        x = jnp.tanh(embedding @ params + action[:, None] / num_actions)
        return step_of(x, x[:, 0], jnp.full(batch, 0.97))

    def step_of(x, reward, discount):
        return jz.Step(prior_logits=x[:, -num_actions:], value=x[:, 1], reward=reward, discount=discount), x

    search = NATIVE[policy](jz.Model(root, step), simulations)

    def run(params, key, embedding):
        out = search(params, key, embedding)
        return out if with_tree else (out.action, out.action_weights)

    return called(run, batch)


def called(run, batch):
    """`run`, jitted, with its arguments."""
    params = jax.random.normal(jax.random.key(0), (WIDTH, WIDTH)) / WIDTH**0.5
    arguments = params, jax.random.key(1), jax.random.normal(jax.random.key(2), (batch, WIDTH))
    jitted = jax.jit(run)
    return lambda: jax.block_until_ready(jitted(*arguments))


def first_call(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def row(policy: str, shape: tuple[int, int, int], with_tree: bool, seconds: float) -> dict[str, Any]:
    """Seconds of the first call and milliseconds of later ones, for all libraries that have the policy."""
    runs = {name: program(library, policy, shape, with_tree) for name, library in LIBRARIES.items()}
    if policy in NATIVE:
        runs["native"] = native_program(policy, shape, with_tree)
    first = {name: first_call(run) for name, run in runs.items()}
    later = {name: 1000 * timing.seconds for name, timing in interleaved(runs, seconds, most=200).items()}
    return dict(policy=policy, shape=shape, with_tree=with_tree, first_s=first, later_ms=later)


def told(found: dict[str, Any]) -> str:
    """A row of the table."""
    first, later = (", ".join(f"{x:.2f}" for x in found[name].values()) for name in ("first_s", "later_ms"))
    faster = ", ".join(f"{x:.2f}" for x in ratios(found).values())
    name = f"| {found['policy']} | {', '.join(map(str, found['shape']))} | {'yes' if found['with_tree'] else 'no'} "
    return f"{name}| {first} | {later} | {faster} |"


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as mctx, after the first call."""
    later = found["later_ms"]
    return {name: later["mctx"] / ms for name, ms in later.items() if name != "mctx"}


def main(config: Config) -> None:
    rows = []
    print("| policy | games, simulations, actions | tree | first call, s: mctx, front, native | later, ms | faster |")
    for policy in POLICIES:
        for shape in SHAPES[3:4] if config.quick else SHAPES:
            for with_tree in (False, True) if shape in SHAPES[-2:] else (False,):
                rows.append(found := row(policy, shape, with_tree, config.seconds))
                print(told(found), flush=True)
    for policy in POLICIES:
        mine = [ratios(found) for found in rows if found["policy"] == policy and not found["with_tree"]]
        for name in mine[0]:
            found = [x[name] for x in mine]
            middle, mean = statistics.median(found), geometric_mean(found)
            print(f"{policy}, {name}: least {min(found):.2f}, median {middle:.2f}, geometric mean {mean:.2f}")
    if config.save:
        results = circumstances() | {"rows": rows}
        print(f"Written: {save(results, HERE.parent / 'results' / 'compat', 'small searches')}")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
