"""Trees that are drawn in the tests of this folder, and what is told of them."""

import functools
import json

import jax
import jax.numpy as jnp

import jaxzero as jz
from jaxzero.viz.search_tree.tree_json import described
from jaxzero.viz.search_tree.visible_nodes import choose
from tests import reference as ref
from tests import worlds

GAMES, SIMULATIONS = 20, 24


@functools.cache
def searched(players=2):
    """Trees over all kinds of worlds, and the reference's."""
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    world = worlds.make(range(GAMES), kinds, num_players=players)
    tree = worlds.grow(world, jz.muzero_puct(), SIMULATIONS)
    roots = [
        ref.search(worlds.pick(world, game), 0, ref.muzero_puct(), num_simulations=SIMULATIONS) for game in range(GAMES)
    ]
    return tree, roots


@functools.cache
def hashed(simulations, actions=8, one_in=None):
    """A tree of that many simulations over a world without end."""
    model = worlds.hashed(actions, one_in=one_in)

    @jax.jit
    def run(keys, state):
        tree = jz.search.plant(*model.root((), keys, state), jz.puct(), simulations + 1)
        return jz.search.search((), keys, tree, model, jz.puct(), simulations)

    return run(jax.random.split(jax.random.key(0), 1), jnp.array([6], jnp.uint32))


def told(tree, game=0, most=1_000, names=None, draw=None):
    """What the page would know of a game."""
    return described("test", tree, game, lambda skeleton: choose(skeleton, most), names, draw, most)


def by_path(nodes):
    """The nodes by the names of the edges that lead to them."""
    edge = {e[4]: e[0] for node in nodes for e in node["edges"] if e[4] is not None}
    paths = [()]
    for i, node in enumerate(nodes[1:], 1):
        assert 0 <= node["up"] < i
        paths.append((*paths[node["up"]], edge[i]))
    return dict(zip(paths, nodes, strict=True))


def data_of(page):
    """What is embedded in a page."""
    return json.loads(page.html.split('id="data">')[1].split("</script>")[0])
