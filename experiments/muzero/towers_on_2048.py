"""How well residual blocks learn the moves of 2048: convolutions, and perceptrons along rows and columns.

    python experiments/muzero/towers_on_2048.py --save       # five minutes

A network gets a board and an action, and predicts the board after the slide, before a tile appears, as the dynamics of
a learned model must. All rows learn from the same minibatches. Printed are how many of 4,096 other boards are predicted
without a mistake in any of the 16 cells, and the seconds of processor time. The other boards are the last four moves of
the games whose earlier moves are learned from, not other games: 59 of them occur there, too.
"""

import argparse
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxzero.atomic_files import free_name
from jaxzero.cli.circumstances import circumstances
from jaxzero.games import rules_2048
from jaxzero.nets.layers import Layer, convolution, dense, initial_params, layer_norm
from jaxzero.nets.muzero.towers import TOWERS
from jaxzero.runs.run_folder import write_whole

RESULTS = pathlib.Path(__file__).parent.parent / "results" / "muzero_towers_on_2048.json"
ROWS = (("convolutions", 1), ("convolutions", 2), ("lines", 1), ("lines", 2))  # tower, blocks
SIDE, CHANNELS, EXPONENTS, ACTIONS, BATCH = 4, 16, 18, 4, 256
LIKED = jnp.array([1.5, 1.0, 0.0, -3.0])  # who plays: mostly left and up, hardly ever down


def boards(games: int, moves: int) -> np.ndarray:
    """Positions of random games: moves are drawn with the logits `LIKED`, tiles by chance."""
    step = jax.jit(_played)
    cells, seen = rules_2048.beginning(jax.random.key(0), games), []
    for key in jax.random.split(jax.random.key(1), moves):
        cells = step(key, cells)
        seen.append(np.asarray(cells))
    return np.concatenate(seen[6:])


def _played(key: jax.Array, cells: jax.Array) -> jax.Array:
    after, _ = jax.vmap(rules_2048.slides)(cells)
    legal = (after != cells[:, None]).any(-1)
    liked = jax.random.gumbel(key, legal.shape) + LIKED
    action = jnp.argmax(jnp.where(legal, liked, -jnp.inf), -1)
    new = rules_2048.spawned(jax.random.fold_in(key, 1), after[jnp.arange(len(cells)), action])
    return jnp.where(legal.any(-1)[:, None], new, cells)


def network(name: str, blocks: int):
    """`(params, board, action) -> logits of the exponents`, and its first parameters."""
    tower, board = TOWERS[name], (SIDE, SIDE, CHANNELS)

    def said(params, cells, action):
        planes = jax.nn.one_hot(cells.reshape(-1, SIDE, SIDE), EXPONENTS)
        x = jax.nn.relu(convolution(params["stem"], planes))
        taken = dense(params["action"], jax.nn.one_hot(action, ACTIONS))
        return dense(params["out"], layer_norm(tower.through(params, x, blocks, taken)[0])).reshape(-1, 16, EXPONENTS)

    layers = {"stem": Layer((3, 3, EXPONENTS, CHANNELS)), "out": Layer((CHANNELS, EXPONENTS))}
    layers |= {"action": Layer((ACTIONS, tower.given(*board)), scale=ACTIONS**0.5)}
    layers |= {f"block_{i}": tower.block(*board) for i in range(blocks)}
    return said, initial_params(layers, jax.random.key(2))


def learning(said, data: jax.Array, minibatches: int):
    """`(params, state, key) -> params, state` after a number of minibatches, and the optimiser."""
    optimiser = optax.adamw(3e-3)

    def loss(params, cells, action):
        after = jax.vmap(rules_2048.slid)(cells, action)[0].astype(jnp.int32)
        return optax.softmax_cross_entropy_with_integer_labels(said(params, cells, action), after).mean()

    def one(carry, key):
        params, state = carry
        which, action = (jax.random.randint(k, (BATCH,), 0, n) for k, n in zip(jax.random.split(key), (len(data), 4)))
        change, state = optimiser.update(jax.grad(loss)(params, data[which], action), state, params)
        return (optax.apply_updates(params, change), state), None

    steps = lambda params, state, key: jax.lax.scan(one, (params, state), jax.random.split(key, minibatches))[0]
    return jax.jit(steps), optimiser


def main() -> None:
    """Prints a line for each row and look."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--looks", type=int, default=6)
    parser.add_argument("--minibatches", type=int, default=800, help="between two looks, of 256 boards each")
    parser.add_argument("--save", action="store_true", help=f"to {RESULTS.name}, or a new file beside it")
    given = parser.parse_args()
    seen = boards(1024, 60)
    data, other = jnp.asarray(seen[:-4096]), jnp.asarray(seen[-4096:])
    action = jax.random.randint(jax.random.key(3), (len(other),), 0, ACTIONS)
    right = jax.vmap(rules_2048.slid)(other, action)[0]
    rows = []
    for name, blocks in ROWS:
        said, params = network(name, blocks)
        learn, optimiser = learning(said, data, given.minibatches)
        learn = learn.lower(params, state := optimiser.init(params), jax.random.key(0)).compile()
        whole = jax.jit(lambda params, said=said: (said(params, other, action).argmax(-1) == right).all(-1).mean())
        size, seconds = sum(x.size for x in jax.tree.leaves(params)), 0.0
        for look in range(given.looks):
            began = time.process_time()
            params, state = jax.block_until_ready(learn(params, state, jax.random.key(look)))
            seconds += time.process_time() - began
            row = dict(tower=name, blocks=blocks, weights=size, minibatches=(look + 1) * given.minibatches)
            rows.append(row | dict(seconds=round(seconds, 1), whole_boards=round(float(whole(params)), 4)))
            print(json.dumps(rows[-1]), flush=True)
    if given.save:
        file = free_name(RESULTS)
        write_whole(file, json.dumps(circumstances() | {"rows": rows}, indent=1) + "\n")
        print(f"Written to {file}")


if __name__ == "__main__":
    main()
