"""The search that networks are judged with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games
from jaxzero.cli.evaluation_search import to_win

NUM = 9


def arms(logits, worth):
    """A model of arms, each of which leads to a position that is worth as much, whatever is done there."""

    def step(params, keys, action, state):
        value = jnp.where(state < 0, jnp.float32(worth)[action], state)
        prior = jnp.broadcast_to(jnp.float32(logits), (*action.shape, NUM))
        zeros, over = jnp.zeros(action.shape), jnp.zeros(action.shape, bool)
        return jz.Step(prior, value, zeros, 1 + zeros, terminal=over), value

    root = lambda params, keys, state: (step(params, keys, jnp.zeros(state.shape, int), state)[0], state)
    return jz.Model(root, step)


def chosen(search):
    return search(None, jax.random.key(0), jnp.full(2, -1.0)).action.tolist()


@pytest.mark.parametrize("worth, scale, arm", [(0.02, 0.5, 0), (0.02, 20.0, 1), (1.0, 0.5, 1)])
def test_a_little_more_is_no_reason_to_leave_what_the_network_likes(worth, scale, arm):
    game, model = games.from_pgx("tic_tac_toe"), arms(4 * np.eye(NUM)[0], worth * np.eye(NUM)[1])
    assert chosen(to_win(game, model, 32, value_scale=scale)) == [arm] * 2
    assert chosen(jz.gumbel(model, 32, gumbel_scale=0.0)) == [1, 1], "mapped, each range of values is as wide"


def test_values_are_mapped_where_chance_decides_or_several_play():
    model = arms(4 * np.eye(NUM)[0], 0.02 * np.eye(NUM)[1])
    several = games.from_pgx("tic_tac_toe")._replace(num_players=3)
    assert chosen(to_win(several, model, 32)) == [1, 1]
