"""2048 with nodes for chance: what each move is worth, and the tree with the tiles that may appear.

    python experiments/gallery/chance_2048.py

Expect: thousands of points expected: down 48.5, right 47.3, up 38.1. Twenty seconds on one core.
"""

import pathlib

import jax
import layout

import jaxzero as jz
from jaxzero import games, nets, options, search, viz
from jaxzero.models import chance, chance_2048
from jaxzero.nets.files import ntuple_weights

file = pathlib.Path(nets.__path__[0], "trained", "ntuples", "2048.safetensors")
network, params, _ = ntuple_weights.load_ntuples(file)
game, keys = games.game_2048(), jax.random.split(jax.random.key(3), 600)
worth = lambda state: chance_2048.move_values(network.value, params, state.cells)
step, state = jax.jit(lambda state, key: game.step(state, worth(state).argmax(), key)), game.init(keys[0])
for key in keys[:300]:  # 300 moves without a search
    state = step(state, key)


def in_thousands(say):  # of points
    scaled = lambda said, embedding: (said._replace(value=said.value / 1e3, reward=said.reward / 1e3), embedding)
    return lambda *given: scaled(*say(*given))


model = jz.Model(*map(in_thousands, chance_2048.expectimax_model(network.value)[:2]))
given = dict(max_considered=4, gumbel_scale=0.0, qvalues=search.completed_by_mix_value(epsilon=0.001))
policy = jz.gumbel(model, 8 if layout.SMALL else 256, **given, wrap=options.expected_outcomes)
out = jax.jit(chance.for_actions(policy, 4))(params, keys[:1], jax.tree.map(lambda x: x[None], state))
called, q = game.action_names, out.info.summary.qvalues[0].tolist()
told = ", ".join(f"{called[a]} {q[a]:.1f}" for a in sorted(range(4), key=lambda a: -q[a]) if q[a])
says = f"Thousands of points expected: {told}. The search moves {called[int(out.action[0])]}."
rows = (300, viz.picture_of(game, state), viz.sketch(out.tree, depth=3, names=called, draw=game.draw))
layout.save(layout.sheet("2048: moves, and the tiles that may appear", says, rows), __file__)
