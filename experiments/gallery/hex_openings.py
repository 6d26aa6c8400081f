"""Which opening moves are good in Hex, 11 x 11: one batch of 121 searches, one for each opening.

    python experiments/gallery/hex_openings.py

Expect: the middle is best (f6: 56 %), the corners a1 and k11 are worst (48 %). A minute on one core.
"""

import jax
import jax.numpy as jnp
import layout
import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play import notation
from jaxzero.viz import board_shapes, svg

SIMULATIONS, ROLLOUTS = (2, 1) if layout.SMALL else (128, 6)
game = games.from_pgx("hex")
called, legal = notation.names(game), game.legal
plain = game._replace(legal=lambda state: legal(state).at[-1].set(False))  # no swap: the value is the move's own
keys = jax.random.split(jax.random.key(0), game.num_actions - 1)
opened = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.arange(len(keys)), keys)
model = models.rollout(plain, rollouts=ROLLOUTS)
search = jz.alphazero(model, SIMULATIONS, rule=jz.puct(1.0), dirichlet_fraction=0.0)
worth = -np.asarray(jax.jit(search)((), keys, opened).value)  # from the view of the opponent to that of the mover
share = 50 * (1 + (worth + worth[::-1]) / 2)  # in %, averaged over two openings that a half-turn exchanges

order = np.argsort(-share, kind="stable")
best, worst = ([f"{called[a]} {share[a]:.0f} %" for a in some] for some in (order[:6:2], order[:-6:-2]))
says = f"Wins expected of the first move, without the swap. Best: {', '.join(best)}; worst: {', '.join(worst)}."
ground = board_shapes.drawable("hex_openings", game)
parts = [board_shapes.stones_drawn(ground, np.zeros((11, 11), int))]
for a, x in enumerate(share):
    (across, down), strength = ground.centre(*divmod(a, 11)), float((x - share.min()) / np.ptp(share))
    parts.append(svg.tag("circle", cx=across, cy=down, r=0.45, fill=svg.BLUE, fill_opacity=strength**2))
    parts.append(svg.words(across, down + 0.12, f"{x:.0f}", 0.36, fill="#fff" if strength > 0.75 else svg.INK))
board = svg.tag("svg", *parts, viewBox="0 0 {:g} {:g}".format(*ground.size))
layout.save(layout.sheet("Hex: which first moves are good", says, (420, board)), __file__)
