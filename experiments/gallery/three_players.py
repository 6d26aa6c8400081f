"""Three players, three in a row on a 5 x 5 board: each move has a value for each of them (max^n).

    python experiments/gallery/three_players.py

Expect: Green stops Blue at b3 rather than Orange at a4, for Blue is next. Ten seconds on one core.
"""

import pathlib
import re

import jax
import layout

import jaxzero as jz
from jaxzero import models
from jaxzero.viz import svg

guide = pathlib.Path(__file__).parents[2] / "notebooks" / "train_your_own_game.md"  # its second example is the game
rules, key, simulations = {}, jax.random.key(0), 64 if layout.SMALL else 4000
exec(re.findall(r"```python\n(# three_in_a_row.py.*?)```", guide.read_text("utf-8"), re.DOTALL)[0], rules)
game = rules["game"]
state, called = game.init(key), game.action_names
for name in "c3 c4 d4 a3 b4".split():
    state = game.step(state, called.index(name), key)
policy = jz.uct(models.rollout(game, rollouts=4), simulations, rule=jz.ucb1(0.7))
out = jax.jit(policy)((), key[None], jax.tree.map(lambda x: x[None], state))
worth = jz.root.player_values(out.tree, 3).qvalues[0].tolist()  # 1 for who wins, -0.5 for the others
visits, best = out.info.summary.visits[0].tolist(), int(out.action[0])
told = [f"{called[a]} {' '.join(f'{x:+.2f}' for x in worth[a])}" for a in (best, called.index("a4"))]
says = f"Green to move. Values for Blue, Orange, Green: {'; '.join(told)}. Visits of {called[best]}: {visits[best]}."
parts = [game.draw(state).removesuffix("</svg>").partition(">")[2]]
for a in (a for a in range(25) if visits[a]):
    for player, colour in enumerate(("#2a6fbb", "#f0902b", "#3f9142")):
        high = 0.02 + 0.5 * (worth[a][player] + 0.5)
        place = dict(x=a % 5 + 0.67 + 0.08 * player, y=a // 5 + 0.88 - high, width=0.08, height=high)
        parts.append(svg.tag("rect", **place, fill=colour))
frame = dict(x=best % 5, y=best // 5, width=0.94, height=0.94, fill="none", stroke=svg.INK, stroke_width=0.04)
board = svg.tag("svg", *parts, svg.tag("rect", **frame), viewBox="-0.05 -0.05 5.05 5.05")
layout.save(layout.sheet("Three in a row, three players", says, (420, board)), __file__)
