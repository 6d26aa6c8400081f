"""The search that networks are judged with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games
from jaxzero.cli.training.evaluation import to_win

NUM = 9


def arms(logits, payments):
    """A model of arms that pay at once, after which it is over."""

    def step(params, keys, action, state):
        zeros = jnp.zeros(action.shape)
        prior = jnp.broadcast_to(jnp.float32(logits), (*action.shape, NUM))
        return jz.Step(prior, zeros, jnp.float32(payments)[action], zeros), state

    return jz.Model(lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state), step)


@pytest.mark.parametrize("paid, chosen", [(0.02, 0), (1.0, 1)])
def test_a_little_more_is_no_reason_to_leave_what_the_network_likes(paid, chosen):
    alone = games.from_pgx("tic_tac_toe")._replace(num_players=1)  # a search of one player proves nothing
    model = arms(4 * np.eye(NUM)[0], paid * np.eye(NUM)[1])
    search = to_win(alone, model, 32)
    assert search(None, jax.random.key(0), jnp.zeros(2)).action.tolist() == [chosen] * 2
    rescaled = jz.gumbel(model, 32, gumbel_scale=0.0)
    assert rescaled(None, jax.random.key(0), jnp.zeros(2)).action.tolist() == [1, 1], "each range of values is as wide"
