"""Which outcomes the codes of Stochastic MuZero stand for, in a small world: codes by argmax, and drawn codes.

    python experiments/muzero/codes_of_chance.py --save      # about five minutes

In the world, a counter counts modulo three, and one of four outcomes with known chances gives the reward. There are six
codes. Printed are the information that the codes have about the outcomes (1: each outcome has its own codes), and the
largest error of the chances that the network predicts.
"""

import argparse
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.nets.muzero.stochastic_mlp import stochastic_mlp
from jaxzero.runs.run_folder import write_whole
from jaxzero.train.muzero.stochastic_loss import ChanceWeights, stochastic_loss
from jaxzero.train.muzero.targets import Targets
from jaxzero.train.muzero.unroll_loss import LossWeights

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "muzero_codes_of_chance.json"
ROWS = ((False, 0.25), (False, 0.05), (False, 0.0), (True, 0.05), (True, 0.0))  # drawn, weight of the commitment
CHANCES, CODES, UNROLL = np.array([0.1, 0.2, 0.3, 0.4]), 6, 3
HEAD = ScalarHead(
    size=1,
    decode=lambda output: output[..., 0],
    loss=lambda output, target: (output[..., 0] - target) ** 2,
    outside=lambda target: jnp.abs(target) > 1,
)


def windows(rng: np.random.Generator, n: int, unroll: int) -> tuple:
    """Observations, actions and targets of windows, and the outcomes in them."""
    start, outcome = rng.integers(0, 3, n), rng.choice(4, (n, unroll + 1), p=CHANCES)
    counter = (start[:, None] + np.arange(unroll + 1)) % 3
    seen = np.concatenate([np.eye(3)[counter], np.eye(4)[outcome]], -1).astype(np.float32)
    there = np.ones((n, unroll + 1), bool)
    value = np.full((n, unroll + 1), (CHANCES * np.arange(4)).sum() / 3, np.float32)
    policy, reward = np.full((n, unroll + 1, 2), 0.5, np.float32), (outcome[:, 1:] / 3).astype(np.float32)
    return seen, rng.integers(0, 2, (n, unroll)), Targets(policy, value, reward, there, there), outcome


def learned(drawn: bool, commitment: float, seed: int, steps: int) -> tuple[float, float]:
    """The share of the information, and the largest error of the chances."""
    rng = np.random.default_rng(seed)
    sizes = dict(codes=CODES, embedding=16, width=32, key=jax.random.key(seed))
    network, params = stochastic_mlp((7,), 2, value=HEAD, reward=HEAD, **sizes)
    optimiser = optax.adam(optax.exponential_decay(3e-3, steps // 2, 0.2))
    weights = dict(weights=LossWeights(1.0, 1.0, 1.0), chance_weights=ChanceWeights(commitment=commitment))

    def loss(params, keys, *given):
        keys = keys if drawn else None
        return stochastic_loss(network, params, *given, jnp.ones(256), keys=keys, **weights)

    @jax.jit
    def step(params, state, keys, *given):
        slopes, _ = jax.grad(loss, has_aux=True)(params, keys, *given)
        change, state = optimiser.update(slopes, state)
        return optax.apply_updates(params, change), state

    state = optimiser.init(params)
    for keys in jax.random.split(jax.random.key(seed), (steps, 1)):
        params, state = step(params, state, keys, *windows(rng, 256, UNROLL)[:3])
    return measured(network, params, drawn, *windows(rng, 4000, 1))


def measured(network, params, drawn: bool, seen, action, targets, outcome) -> tuple[float, float]:
    """The share of the outcomes' information that codes have, and the largest error of the chances."""
    del targets
    encoded = network.encode(params, seen[:, 0], seen[:, 1])
    code = jax.nn.softmax(encoded) if drawn else jax.nn.one_hot(jnp.argmax(encoded, -1), CODES)
    table = np.zeros((4, CODES))
    np.add.at(table, outcome[:, 1], np.asarray(code) / len(code))
    entropy = lambda p: -(p[p > 0] * np.log(p[p > 0])).sum()
    of_outcomes = entropy(table.sum(1))
    information = (of_outcomes + entropy(table.sum(0)) - entropy(table.ravel())) / of_outcomes
    after = network.afterstate(params, network.represent(params, seen[:, 0]), jnp.asarray(action[:, 0]))
    chances = np.asarray(jax.nn.softmax(network.foresee(params, after)[0]))
    found = np.stack([chances[:, table.argmax(0) == i].sum(1) for i in range(4)], 1)
    return float(information), float(np.abs(found - CHANCES).max())


def main() -> None:
    """Prints a line for each row and seed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000, help="of the optimiser, with 256 windows each")
    parser.add_argument("--save", action="store_true", help=f"to {RESULTS.name}, or a new file beside it")
    given = parser.parse_args()
    rows = []
    for drawn, commitment in ROWS:
        found = [learned(drawn, commitment, seed, given.steps) for seed in range(given.seeds)]
        row = dict(drawn=drawn, commitment=commitment, steps=given.steps)
        row |= dict(information=[round(x[0], 3) for x in found], off=[round(x[1], 3) for x in found])
        rows.append(row)
        print(json.dumps(row), flush=True)
    if given.save:
        file = free_name(RESULTS)
        write_whole(file, json.dumps(circumstances() | {"rows": rows}, indent=1) + "\n")
        print(f"Written to {file}")


if __name__ == "__main__":
    main()
