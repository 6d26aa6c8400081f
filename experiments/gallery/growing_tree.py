"""A tree that grows: one search of Connect Four, drawn after 1, 2, 4, ... 512 simulations.

    python experiments/gallery/growing_tree.py

Expect: column 3 is ahead at 32 simulations, column 7 at 64, and of 512 it has 459. Half a minute on one core.
"""

import jax
import jax.numpy as jnp
import layout
import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.nets import weights
from jaxzero.search.edge_view import parents
from jaxzero.viz import svg

LOOKS = [2**k for k in range(5 if layout.SMALL else 10)]
game, keys = games.from_pgx("connect_four"), jax.random.key(0)[None]
net, params, _ = weights.load(weights.trained("connect_four_small"), game)
model, state, step = models.perfect(game, net), jax.vmap(game.init)(keys), jax.jit(jax.vmap(game.step))
for column in "44434344333":
    state = step(state, jnp.array([int(column) - 1]), keys)
room, limit = dict(capacity=LOOKS[-1] + 1, dirichlet_fraction=0.0), jz.options.total_visits  # with earlier looks
search = lambda n: jz.alphazero(model, LOOKS[-1], stop=limit(n), **room)
think_on = jax.jit(lambda n, tree: search(n)(params, keys, tree=tree).tree)
trees = [jax.jit(lambda: search(1)(params, keys, state).tree)()]
for n in LOOKS[1:]:
    trees.append(think_on(n, trees[-1]))
    print(f"{n:4} simulations, by column:", *jz.summary(trees[-1]).visits[0].tolist())

above = np.asarray(parents(trees[-1]))[0, : LOOKS[-1] + 1]  # node i came with simulation i
radius = [0.12 + 0.7 * np.sqrt(np.asarray(tree.visits)[0, : len(above)] / LOOKS[-1]) for tree in trees]
there = [np.arange(len(above)) <= n for n in LOOKS]
growing = layout.growing_around(above, np.where(there, radius, 0.0), (svg.BLUE, svg.ORANGE))  # by who has moved
counted = layout.in_turn([f"{n} simulation{'s' * (n > 1)}" for n in LOOKS])
says = "A dot is a position, its area the visits. Orange, then Blue, then Orange moves away from the middle."
layout.save(layout.sheet("A search tree of Connect Four grows", says, (26, counted), (520, growing)), __file__)
