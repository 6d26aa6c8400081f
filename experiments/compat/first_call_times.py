"""mctx and the front side by side, in small searches: what a first program costs, compiling included.

    python experiments/compat/first_call_times.py                # four minutes on two CPU cores
    python experiments/compat/first_call_times.py --save      # and write results/compat/small-searches-<date>.json

Both run in one process, in turn; of the times of calls the median counts. "tree" returns the whole search tree from the
jitted policy; the other columns return the action and its weights.
"""

import dataclasses
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import tyro

from jaxzero.compat import mctx as front

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from bench.measure import circumstances, interleaved, save  # noqa: E402

LIBRARIES = {"mctx": mctx, "front": front}
WIDTH = 64  # of the model's one layer
SHAPES = [(batch, simulations, actions) for batch, simulations in ((1, 50), (16, 16), (128, 32)) for actions in (4, 18)]
POLICIES = ("muzero_policy", "gumbel_muzero_policy", "stochastic_muzero_policy")


@dataclasses.dataclass(frozen=True)
class Config:
    """What is measured, and how long."""

    seconds: float = 1.5
    """For each row, after the first calls."""
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

    params = jax.random.normal(jax.random.key(0), (WIDTH, WIDTH)) / WIDTH**0.5
    arguments = params, jax.random.key(1), jax.random.normal(jax.random.key(2), (batch, WIDTH))
    jitted = jax.jit(run)
    return lambda: jax.block_until_ready(jitted(*arguments))


def first_call(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def row(policy: str, shape: tuple[int, int, int], with_tree: bool, seconds: float) -> dict[str, Any]:
    """Seconds of the first call and milliseconds of later ones, of both libraries."""
    runs = {name: program(library, policy, shape, with_tree) for name, library in LIBRARIES.items()}
    first = {name: first_call(run) for name, run in runs.items()}
    later = {name: 1000 * timing.seconds for name, timing in interleaved(runs, seconds, most=200).items()}
    return dict(policy=policy, shape=shape, with_tree=with_tree, first_s=first, later_ms=later)


def main(config: Config) -> None:
    rows = []
    print(
        "| policy | games, simulations, actions | tree | first call, s: mctx, front | later, ms: mctx, front | faster |"
    )
    for policy in POLICIES:
        for shape in SHAPES[2:3] if config.quick else SHAPES:
            for with_tree in (False, True) if shape in SHAPES[-2:] else (False,):
                rows.append(found := row(policy, shape, with_tree, config.seconds))
                (a, b), (c, d) = found["first_s"].values(), found["later_ms"].values()
                name = f"| {policy} | {', '.join(map(str, shape))} | {'yes' if with_tree else 'no'} "
                print(f"{name}| {a:.1f}, {b:.1f} | {c:.2f}, {d:.2f} | {c / d:.1f} |", flush=True)
    if config.save:
        results = circumstances() | {"rows": rows}
        print(f"Written: {save(results, HERE.parent / 'results' / 'compat', 'small searches')}")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
