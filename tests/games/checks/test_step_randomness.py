"""A step that depends on its key is told from one that does not, through whatever it is wrapped in."""

import jax
import jax.numpy as jnp
import pytest

from jaxzero import games
from jaxzero.games.checks.step_randomness import depends_on_key

roll = lambda key: jax.random.randint(key, (), 1, 7)


@pytest.mark.parametrize("step, depends", [
    (lambda state, action, key: state + roll(key), True),
    (lambda state, action, key: state + action, False),
    (lambda state, action, key: state + 0 * action + jnp.zeros_like(jax.random.split(key), dtype=int)[0], False),
    (jax.jit(lambda state, action, key: state + action), False),
    (jax.jit(lambda state, action, key: state + roll(key)), True),
    (lambda state, action, key: jax.lax.cond(action > 0, lambda: state + roll(key), lambda: state), True),
    (lambda state, action, key: jax.lax.fori_loop(0, 3, lambda i, x: x + roll(key), state), True),
    (lambda state, action, key: jax.lax.scan(lambda k, _: (jax.random.split(k)[0], 0), key, None, 3)[1][0], False),
    (lambda state, action, key: (state, {"paid": jnp.float32(0), "seen": jax.random.normal(key, (3,))}), True),
])  # fmt: skip
def test_steps(step, depends):
    assert depends_on_key(step, jnp.int32(0)) == depends


@pytest.mark.parametrize(
    "name, depends", [("2048", True), ("backgammon", True), ("connect_four", False), ("hex", False)]
)
def test_games_of_pgx(name, depends):
    pytest.importorskip("pgx")
    game = games.from_pgx(name)
    assert depends_on_key(game.step, jax.eval_shape(game.init, jax.random.key(0))) == depends


def test_an_error_of_the_steps_own_is_shown():
    with pytest.raises(ValueError, match="mine"):
        depends_on_key(lambda state, action, key: (_ for _ in ()).throw(ValueError("mine")), jnp.int32(0))
