"""The table of what trees take: its figures are those of the arrays."""

import pathlib
import sys

import jax
import jax.numpy as jnp

import jaxzero as jz
from tests import worlds

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing


def test_bytes_of_a_tree_are_those_of_its_arrays():
    import legal_slots_memory  # ty: ignore

    config = legal_slots_memory.Config(nodes=5, width=3, game="tic_tac_toe")
    dense, narrow, *_ = legal_slots_memory.main(config)
    # 6 nodes with the one that is nowhere; all 9 children (3) are in the rows of 4 + 9 (4 + 3) floats
    rows = 6 * 4 * (3 + 1 + 8)  # stats, best_child, facts
    per_game = 4 * 4  # size, status, overflows, simulations
    root = {9: 4 * 9, 3: 4 * 3}  # the prior in force, with noise
    assert dense["bytes"] == rows + 6 * 4 * (13 + 9) + per_game + root[9]
    assert narrow["bytes"] == rows + 6 * 4 * (7 + 3) + per_game + root[3] + 6 * (2 * 3 + 4)  # numbers, dropped
    assert dense["with_states"] - dense["bytes"] == narrow["with_states"] - narrow["bytes"] > 0


def test_a_tree_is_as_large_as_its_shapes_say():
    import legal_slots_memory  # ty: ignore

    world = worlds.make(range(2))
    tree = worlds.grow(world, jz.puct(), 3)
    assert legal_slots_memory.tree_bytes(tree) == sum(x.nbytes for x in jax.tree.leaves(tree))
    assert (
        legal_slots_memory.tree_bytes(tree) - legal_slots_memory.tree_bytes(tree, state=False)
        == jnp.asarray(tree.state).nbytes
    )
