"""The memory of a search tree for chess: an edge for every action, or for every legal move.

    .venv/bin/python experiments/legal_slots_memory.py

Nothing is searched and no memory is used: the trees are only shapes (`jax.eval_shape`). The first rows leave out the
model's embedding of each position; the last rows include it, for pgx's chess.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import tyro
from bench.measure import markdown

import jaxzero as jz
from jaxzero import games, models


@dataclasses.dataclass(frozen=True)
class Config:
    nodes: int = 800
    """Nodes of the tree, the root included."""
    width: int = 218
    """Slots per node; no known chess position has more moves."""
    game: str = "chess"
    """One of pgx's games."""


def tree_bytes(tree: jz.Tree, state: bool = True) -> int:
    """Bytes of the arrays of a tree, for one game or for all; `state`: include the model's embeddings."""
    if not state:
        kept = tree.state._replace(state=()) if isinstance(tree.state, jz.options.Slots) else ()
        tree = tree.replace(state=kept)
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def shapes(model: jz.Model, config: Config, width: int | None, layout: jz.Layout, state: object) -> jz.Tree:
    """The tree of a search, as shapes."""

    def build(model: jz.Model) -> Callable:
        return jz.alphazero(model, config.nodes - 1, layout=layout)

    policy = build(model) if width is None else jz.options.with_legal_slots(build, model, width)
    return jax.eval_shape(policy, (), jax.random.split(jax.random.key(0), 1), state).tree


def main(config: Config) -> list[dict]:
    game = games.from_pgx(config.game)
    state = jax.eval_shape(jax.vmap(game.init), jax.random.split(jax.random.key(0), 1))
    model = models.perfect(game, lambda params, seen: (jnp.zeros((len(seen), game.num_actions)), jnp.zeros(len(seen))))
    rows = []
    for name, layout in (("default", jz.Layout()), ("COMPACT", jz.COMPACT)):
        for width in (None, config.width):
            tree = shapes(model, config, width, layout, state)
            bare, whole = tree_bytes(tree, state=False), tree_bytes(tree)
            rows.append({"layout": name, "edges": tree.num_edges, "bytes": bare, "with_states": whole})
    table = []
    for dense, slots in zip(rows[::2], rows[1::2]):
        for row in (dense, slots):
            ratios = [f"{dense[key] / row[key]:.1f}" for key in ("bytes", "with_states")]
            table.append([row["layout"], row["edges"], row["bytes"], ratios[0], row["with_states"], ratios[1]])
    print(f"{config.game}, {config.nodes} nodes, one game\n")
    print(markdown(["layout", "edges", "bytes", "times less", "with states", "times less"], table))
    return rows


if __name__ == "__main__":
    main(tyro.cli(Config))
