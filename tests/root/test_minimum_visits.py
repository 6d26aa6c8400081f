"""Minimum visits: by hand on views of edges, and that a search gives every legal action as many, proven or not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from tests.worlds import edges

SEEN = edges(prior=[0.4, 0.3, 0.2, -jnp.inf], visits=[9, 2, 0, 0], value=[0.4, -0.2, 0, 0], node_visits=12)
THREE = games.from_pgx("tic_tac_toe")


@pytest.mark.parametrize("least, chosen", [(0, 0), (1, 2), (2, 2), (3, 2), (20, 2)])
def test_the_edge_that_lacks_most_comes_first(least, chosen):
    scores = jz.root.minimum_visits(jz.puct(0.1), least).score(SEEN)
    open_ = jnp.where(jnp.isneginf(SEEN.prior), -jnp.inf, scores)
    assert int(jnp.argmax(open_)) == chosen


def test_without_a_lack_the_rule_decides():
    for least in (0, jnp.int32(0)):
        found = jz.root.minimum_visits(jz.puct(), least).score(SEEN)
        np.testing.assert_array_equal(found, jz.puct().score(SEEN))


def test_what_is_no_number_of_visits():
    with pytest.raises(ValueError, match="least"):
        jz.root.minimum_visits(jz.puct(), -1)
    with pytest.raises(ValueError, match="minimum_visits: rule"):
        jz.root.minimum_visits(jz.puct, 1)


def test_every_legal_action_is_visited_though_a_win_is_proven():
    model, rule = models.rollout(THREE), jz.avoid_proven(jz.ucb1())
    keys = jax.random.split(jax.random.key(0), 1)
    states = jax.vmap(THREE.init)(keys)
    for action in (0, 3, 1, 4):  # who is to move wins by the third
        states = jax.vmap(THREE.step)(states, jnp.full(1, action), keys)

    @jax.jit
    def visits(least):
        policy = jz.uct(model, 60, rule=rule, root_rule=jz.root.minimum_visits(rule, least))
        out = policy((), keys, states)
        return out.info.summary.visits[0], out.action[0]

    found, action = visits(jnp.int32(6))
    assert action == 2 and found.sum() == 60
    np.testing.assert_array_equal(found >= 6, jax.vmap(THREE.legal)(states)[0])
    assert visits(jnp.int32(0))[0].min() == 0 and (visits(jnp.int32(0))[0] < 6)[jnp.array([5, 6, 7, 8])].any()
