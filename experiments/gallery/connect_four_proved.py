"""A late position of Connect Four, solved: the search proves a win, and stops.

    python experiments/gallery/connect_four_proved.py

Expect: Orange wins by column 6, value proven +1 with 211 nodes, 9 plies to the win. Half a minute on one core.
"""

import jax
import jax.numpy as jnp
import layout
import numpy as np

import jaxzero as jz
from jaxzero import games, models, viz
from jaxzero.nets import weights
from jaxzero.play import notation
from jaxzero.search.edge_view import parents
from jaxzero.viz import svg

game, keys, rule = games.from_pgx("connect_four"), jax.random.key(0)[None], jz.avoid_proven(jz.puct())
net, params, _ = weights.load(weights.trained("connect_four_small"), game)
state, step, called = jax.vmap(game.init)(keys), jax.jit(jax.vmap(game.step)), notation.names(game)
first, moves = int(game.to_play(state)[0]), "21621722344442423417115665766"
for column in moves:
    state = step(state, jnp.array([called.index(column)]), keys)
prove = jz.alphazero(models.perfect(game, net), 3000, rule=rule, stop=jz.solved, dirichlet_fraction=0.0)
tree = jax.jit(prove)(params, keys, state).tree
size, low = int(tree.size[0]), float(jz.options.bounds(tree)[0, 0])
line = [called[a] for a in jz.principal_variation(tree, 42)[0].tolist() if a >= 0]
says = f"Value proven: {low:+.0f}, with {size} nodes. Expected line, {len(line)} plies to the win: {' '.join(line)}"

above = np.asarray(parents(tree))[0, :size]
where, depth = layout.around(above)
bounds = np.asarray(tree.bounds)[0, :size] * (-1.0) ** depth[:, None]  # for Orange, the player to move at the root
kinds = (np.ptp(bounds, 1) >= 0, "#c3cad2"), (np.ptp(bounds, 1) == 0, svg.INK)  # open; over, or a proven draw
kinds += (bounds.max(1) == -1, svg.BLUE), (bounds.min(1) == 1, svg.ORANGE)
board = viz.board(game, jax.tree.map(lambda x: x[0], state), first, viz.report_of(tree))
top = viz.sketch(tree, depth=4, widest=3, names=called, draw=viz.drawer(game, first))
rows = (430, board, layout.drawn_around(above, kinds)), (240, top)
layout.save(layout.sheet("Connect Four, solved by proof", says, *rows), __file__)
