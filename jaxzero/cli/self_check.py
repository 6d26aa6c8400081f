"""Self-check: searches whose visits are known exactly, to test an installation.

The canary searches a small world in which no choice is close. Logits, values and rewards are fractions of small
integers, drawn by integer arithmetic. Wherever a search chooses, the best edge is ahead of the next by 6e-4 or more,
some hundred times the error of any device's square roots and exponentials (`tests/cli/test_self_check.py` measures it,
with a slow and plain search that arrives at the same visits). So the visits are the same on every device, in 64-bit
mode and under every setting of the compiler, and their checksum has to be the number recorded here.
"""

import functools
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from jaxzero.options.leaf_parallel.parallel import parallel
from jaxzero.options.subtree_reuse import advance
from jaxzero.policies import Policy, alphazero, gumbel, uct
from jaxzero.root.root_action import most_visited
from jaxzero.search.node_storage import unpack_facts
from jaxzero.search.tree import Tree
from jaxzero.types import Model, PolicyOutput, Step

__all__ = ["RECORDED", "SIGNATURE", "Found", "Search", "canary", "fold", "searches", "world"]

STATES, ACTIONS, SIMULATIONS = 256, 6, 48
#: The root states: from them no choice is close in any of the searches. Each is searched in eight copies.
ROOTS, COPIES = (25, 31, 36, 40, 54, 62, 64, 71, 91, 117, 142, 152, 197, 245, 246, 252), 8


def scramble(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """lowbias32 (C. Wellons, hash-prospector, 2018)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def described(state: Int[Array, "B"]) -> Step:
    """The model's outputs for states: six actions, a quarter of them illegal; two players, no strict turns.

    Logits are 128ths, all different, values 64ths; one state in sixteen ends the game, and pays 1 or −1.
    """
    dtype, action = jnp.result_type(float), jnp.arange(ACTIONS, dtype=jnp.uint32)
    bits = scramble(97 * state.astype(jnp.uint32) + 1)
    each = scramble(bits[:, None] + action + 1)
    terminal = bits % 16 == 0
    return Step(
        prior_logits=(8 * (each >> 26) + action).astype(dtype) / 128 - 2,
        value=(bits >> 25).astype(dtype) / 64 - 1,
        reward=jnp.where(terminal, jnp.where(bits & 64 > 0, 1, -1), 0).astype(dtype),
        discount=jnp.where(terminal, 0, 1).astype(dtype),
        legal=(each % 4 > 0) | (action == bits[:, None] % ACTIONS),
        terminal=terminal,
        to_play=((bits >> 8) & 1).astype(jnp.int32),
    )


def following(state: Int[Array, "B"], action: Int[Array, "B"]) -> Int[Array, "B"]:
    """The states that actions lead to."""
    return (scramble(8 * state.astype(jnp.uint32) + action.astype(jnp.uint32)) % STATES).astype(jnp.int32)


def world() -> Model:
    """The world as a model."""

    def root(params: Any, keys: Any, state: Array) -> tuple[Step, Array]:
        return described(state), state

    def step(params: Any, keys: Any, action: Array, state: Array) -> tuple[Step, Array]:
        below = following(state, action)
        return described(below), below

    return Model(root, step)


# --- the canary ------------------------------------------------------------------------------------------------------


class Search(NamedTuple):
    """One part of the canary.

    Attributes:
        policy: what searches.
        moves: how many moves are made, each followed by a search that goes on from the tree below it.
    """

    policy: Policy
    moves: int = 0


def searches(model: Model) -> dict[str, Search]:
    """The parts of the canary, by name."""
    quiet = dict(dirichlet_fraction=0.0, act=most_visited)
    return {
        "PUCT, with its tree reused": Search(alphazero(model, SIMULATIONS, capacity=2 * SIMULATIONS + 1, **quiet), 1),
        "UCB1": Search(uct(model, SIMULATIONS)),
        "Gumbel": Search(gumbel(model, SIMULATIONS, max_considered=4, gumbel_scale=0.0)),
        "PUCT, 4 leaves at a time": Search(alphazero(model, SIMULATIONS, simulate=parallel(4), **quiet)),
    }


#: The checksums of the visits of each part; `SIGNATURE` is that of all parts.
RECORDED = {
    "PUCT, with its tree reused": 0x972F4675,
    "UCB1": 0x9A7BBF62,
    "Gumbel": 0x445A4AF8,
    "PUCT, 4 leaves at a time": 0x6C204D03,
}
SIGNATURE = 0x9EDBC3D2


def fold(numbers: Any) -> int:
    """A 32-bit checksum of whole numbers and their order (CRC-32)."""
    return zlib.crc32(np.asarray(numbers, "<i8").tobytes())


@jax.jit
def counts(out: PolicyOutput) -> Int[Array, "B 2 N"]:
    """The visits of every node, nodes in the order in which they were made, and the actions that led there."""
    visits, action = out.tree.visits, unpack_facts(out.tree.facts[:, :-1]).action
    return jnp.stack([visits, jnp.where(visits > 0, action, -1)], 1)


def program(part: Search) -> Callable[[], list[PolicyOutput]]:
    """The function that runs a part, compiled at its first call: `() -> policy outputs`, the first and one per move."""
    start = jnp.tile(jnp.asarray(ROOTS, jnp.int32), COPIES)
    keys, zero = jax.random.split(jax.random.key(0), len(start)), jnp.zeros_like(start)

    @jax.jit
    def begin() -> PolicyOutput:
        return part.policy((), keys, start)

    @jax.jit  # the first search, too, where moves follow: games without a tree are planted
    def go_on(tree: Tree, action: Array, state: Array) -> tuple[PolicyOutput, Array]:
        out = part.policy((), keys, state, advance(tree, action, reset=tree.size == 0))
        return out, following(state, out.action)

    @functools.cache
    def no_tree() -> Tree:
        like = jax.eval_shape(lambda: advance(begin().tree, zero))
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def run() -> list[PolicyOutput]:
        if not part.moves:
            return [begin()]
        out, state = go_on(no_tree(), zero, start)
        outs = [out]
        for _ in range(part.moves):
            out, state = go_on(out.tree, out.action, state)
            outs.append(out)
        return outs

    return run


class Found(NamedTuple):
    """The results of a part of the canary.

    Attributes:
        name: the name of the part.
        signature: the checksum of its counts.
        wrong: what else is wrong, in words; "" if nothing.
        simulations: how many were made, in all games.
        first: seconds of the first run, compiling included.
        again: seconds of the fastest later run.
    """

    name: str
    signature: int
    wrong: str
    simulations: int
    first: float
    again: float


def canary(parts: Mapping[str, Search]) -> Iterator[Found]:
    """Runs the parts, one after another."""
    for name, part in parts.items():
        run, taken, outs = program(part), [], []
        for _ in range(4):
            began = time.monotonic()
            outs = jax.block_until_ready(run())
            taken.append(time.monotonic() - began)
        found = np.stack([counts(out) for out in outs]).reshape(len(outs), COPIES, len(ROOTS), -1)
        wrong = faults(found, np.stack([out.info.status for out in outs]))
        made = len(outs) * SIMULATIONS * len(ROOTS) * COPIES
        yield Found(name, fold(found[:, 0]), wrong, made, taken[0], min(taken[1:]))


def faults(found: Int[np.ndarray, "M C R F"], status: Int[np.ndarray, "M B"]) -> str:
    """Faults that can be seen without knowing the right numbers, in words; "" if none.

    Args:
        found: counts after M searches, of C copies of R games.
        status: the searches' `info.status`.
    """
    same = (found == found[:, :1]).all()
    return " and ".join(
        (["equal games have different visits"] if not same else [])
        + ([f"info.status is {status.max()} instead of 0"] if status.any() else [])
    )
