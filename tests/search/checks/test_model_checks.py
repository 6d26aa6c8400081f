"""What a user's model may return: numbers in place of one entry per game."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.checks.model_checks import checked
from tests import worlds

GAMES = 3
KEYS = jax.random.split(jax.random.key(0), GAMES)
START = jnp.zeros(GAMES, jnp.int32)


def paying(reward, discount):
    """A model of one player with such rewards and discounts; where they are None, one entry per game."""

    def said(state, action, reward, discount):
        ones = jnp.ones(len(state))
        reward, discount = (ones * 2 if reward is None else reward), (ones / 2 if discount is None else discount)
        logits, never = jnp.zeros((len(state), 4)).at[:, 0].set(1), jnp.zeros(len(state), bool)
        return jz.Step(logits, state / 9, reward, discount, terminal=never), state + action

    return jz.Model(
        lambda params, keys, state: said(state, 0, reward, discount),
        lambda params, keys, action, state: said(state, action, reward, discount),
    )


@pytest.mark.parametrize(
    "reward, discount", [(2, 0.5), (2.0, jnp.float32(0.5)), (np.float32(2), None)], ids=["numbers", "arrays", "reward"]
)
def test_a_number_is_the_reward_or_discount_of_every_game(reward, discount):
    one, other = (
        jax.jit(lambda model=model: checked(model.step(None, KEYS, START, START)[0]))()
        for model in (paying(reward, discount), paying(None, None))
    )
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert one[0].reward.tolist() == [2, 2, 2] and one[0].discount.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.slow
def test_searches_are_the_same_bits():
    one, other = (jax.jit(jz.uct(model, 6))(None, KEYS, START) for model in (paying(2, 0.5), paying(None, None)))
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert (one.value > 2).all()


WRAPPED = {
    "lanes": lambda model: jz.alphazero(model, 6, simulate=jz.parallel(3)),
    "slots": lambda model: jz.options.with_legal_slots(lambda m: jz.gumbel(m, 6), model, 3),
    "kept": lambda model: jz.options.with_evaluations_kept(lambda m: jz.gumbel(m, 6), model),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPED)
def test_so_it_is_with_options(name):
    out = jax.eval_shape(WRAPPED[name](paying(2, 0.5)), None, KEYS, START)
    assert out.value.shape == (GAMES,)


def test_one_number_for_several_players_is_refused():
    world = worlds.make(range(GAMES), num_players=3)
    model = worlds.model._replace(step=lambda *args: (worlds.model.step(*args)[0]._replace(reward=0.0), args[-1]))
    with pytest.raises(ValueError, match=r"Step.reward has shape \(\); .* must be \(3, 3\).* P = 3 players"):
        jax.eval_shape(jz.uct(model, 4), world, KEYS, START)


@pytest.mark.parametrize("field", ["value", "reward", "discount", "prior_logits"])
@pytest.mark.parametrize("which", ["root", "step"])
def test_what_is_missing_is_named(field, which):
    model = paying(None, None)
    function = getattr(model, which)
    model = model._replace(**{which: lambda *args: (function(*args)[0]._replace(**{field: None}), args[-1])})
    with pytest.raises(ValueError, match=f"Step.{field} is None. Return "):
        jax.eval_shape(jz.uct(model, 4), None, KEYS, START)


@pytest.mark.parametrize("value", [0.5, jnp.float32(0.5)])
def test_one_value_for_all_games_is_refused(value):
    model = paying(None, None)
    root = lambda *args: (model.root(*args)[0]._replace(value=value), args[-1])
    with pytest.raises(ValueError, match=r"Step.value has shape \(\); .* must be \(3,\).*Return B = 3 entries"):
        jax.eval_shape(jz.uct(model._replace(root=root), 4), None, KEYS, START)
