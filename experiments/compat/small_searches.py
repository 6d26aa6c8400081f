"""mctx and the front side by side, in small searches: what a first program costs, compiling included.

    python experiments/compat/small_searches.py                # four minutes on two CPU cores
    python experiments/compat/small_searches.py --json out.json

Both run in one process, in turn; of the times of calls the median counts. "tree" returns the whole search tree from the
jitted policy; the other columns return the action and its weights.
"""

import argparse
import json
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp
import mctx

from jaxzero.compat import mctx as front

WIDTH = 64  # of the model's one layer
SHAPES = [(batch, simulations, actions) for batch, simulations in ((1, 50), (16, 16), (128, 32)) for actions in (4, 18)]
POLICIES = ("muzero_policy", "gumbel_muzero_policy", "stochastic_muzero_policy")


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
    """A jitted search, and its arguments."""
    batch, simulations, num_actions = shape
    plain, stochastic = models(library, num_actions)
    functions = stochastic if policy == "stochastic_muzero_policy" else plain

    def run(params, key, embedding):
        logits = embedding[:, -num_actions:]
        root = library.RootFnOutput(prior_logits=logits, value=embedding[:, 1], embedding=embedding)
        out = getattr(library, policy)(params, key, root, *functions, simulations)
        return out if with_tree else (out.action, out.action_weights)

    params = jax.random.normal(jax.random.key(0), (WIDTH, WIDTH)) / WIDTH**0.5
    return jax.jit(run), (params, jax.random.key(1), jax.random.normal(jax.random.key(2), (batch, WIDTH)))


def first_call(run, arguments):
    began = time.perf_counter()
    jax.block_until_ready(run(*arguments))
    return time.perf_counter() - began


def row(policy, shape, with_tree, calls):
    """Seconds of the first call and milliseconds of later ones, of both libraries."""
    pairs = [program(library, policy, shape, with_tree) for library in (mctx, front)]
    first = [first_call(*pair) for pair in pairs]
    times = [[1000 * first_call(*pair) for pair in pairs] for _ in range(calls)]
    later = [statistics.median(column) for column in zip(*times)]
    return dict(policy=policy, shape=shape, with_tree=with_tree, first_s=first, later_ms=later)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there, too")
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="one shape, few calls")
    options = parser.parse_args()
    shapes, calls = (SHAPES[2:3], 5) if options.quick else (SHAPES, options.calls)
    rows = []
    print(
        "| policy | games, simulations, actions | tree | first call, s: mctx, front | later, ms: mctx, front | faster |"
    )
    for policy in POLICIES:
        for shape in shapes:
            for with_tree in (False, True) if shape in SHAPES[-2:] else (False,):
                rows.append(found := row(policy, shape, with_tree, calls))
                (a, b), (c, d) = found["first_s"], found["later_ms"]
                name = f"| {policy} | {', '.join(map(str, shape))} | {'yes' if with_tree else 'no'} "
                print(f"{name}| {a:.1f}, {b:.1f} | {c:.2f}, {d:.2f} | {c / d:.1f} |", flush=True)
    if options.json:
        about = dict(device=jax.devices()[0].device_kind, jax=jax.__version__, date=time.strftime("%Y-%m-%d"))
        options.json.write_text(json.dumps(about | {"mctx": mctx.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
