"""What one step of a learned model of 2048 is compared with: one step by the rules, written out."""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.games import rules_2048

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments" / "muzero"))  # as running a script there does; last, so that it hides nothing

import one_step_2048 as module  # noqa: E402

HEAD = nets.two_hot(bins=21, limit=20.0)


def network():
    net, params = nets.stochastic_mlp(
        (4, 4, 18), 4, value=HEAD, reward=HEAD, codes=3, embedding=8, width=8, key=jax.random.key(0)
    )
    noise = lambda x: x + 0.3 * jax.random.normal(jax.random.key(x.size), x.shape)  # heads begin at zero
    return net, jax.tree.map(noise, params)


def position():
    cells = jnp.uint8([1, 1, 2, 3, 4, 5, 4, 5, 3, 2, 1, 6, 1, 2, 3, 7])
    return rules_2048.Board2048(cells[None], jnp.zeros(1), jnp.zeros(1, bool))


@pytest.mark.slow
def test_one_step_by_the_rules_is_the_mean_over_the_tiles():
    (net, params), states = network(), position()
    said = module.opinions(net, params, states)
    value = lambda state: float(
        net.value.decode(net.predict(params, net.represent(params, module.GAME.observe(state)[None]))[1])[0]
    )
    for action in range(4):
        after, paid = rules_2048.slid(states.cells[0], action)
        empty, expected = np.flatnonzero(np.asarray(after) == 0), 0.0
        for cell in empty:
            for exponent, chance in ((1, 0.9), (2, 0.1)):
                board = rules_2048.with_tile(after, jnp.int32(cell), jnp.int32(exponent), paid)
                expected += 0.0 if bool(board.over) else chance / len(empty) * value(board)
        assert float(said["rules"]["reward"][0, action]) == float(paid)
        np.testing.assert_allclose(said["rules"]["value"][0, action], expected, rtol=1e-4, atol=1e-4)
        both = float(paid) + module.GAMMA * expected
        np.testing.assert_allclose(said["ways"]["rules"][0, action], both, rtol=1e-4, atol=1e-4)


def test_the_model_s_step_is_the_mean_over_its_codes():
    net, params = network()
    seen = jax.vmap(module.GAME.observe)(position())
    said = module.said_by_model(net, params, seen)
    embedding = net.represent(params, seen)
    for action in range(4):
        after = net.afterstate(params, embedding, jnp.array([action]))
        chances = np.asarray(jax.nn.softmax(net.foresee(params, after)[0]))[0]
        reward = value = 0.0
        for code, chance in enumerate(chances):
            state, paid = net.dynamics(params, after, jax.nn.one_hot(jnp.array([code]), 3))
            reward += chance * float(net.reward.decode(paid)[0])
            value += chance * float(net.value.decode(net.predict(params, state)[1])[0])
        np.testing.assert_allclose(said["reward"][0, action], reward, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(said["value"][0, action], value, rtol=1e-4, atol=1e-5)


def test_correlations_are_over_the_legal_moves_of_each_position():
    true = np.array([[1.0, 2.0, 3.0, 9.0], [5.0, 9.0, 9.0, 4.0]])
    legal = np.array([[True, True, True, False], [True, False, False, True]])
    shifted = np.where(legal, 2 * true + np.array([[7.0], [-50.0]]), 1e6)  # what is the same for all moves says nothing
    assert module.correlation(shifted, true, legal) == pytest.approx(1)
    assert module.correlation(-shifted, true, legal) == pytest.approx(-1)
