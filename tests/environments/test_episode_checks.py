"""What random play finds in an environment that no trace can tell."""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from jaxzero.environments import Environment, Outcome, check_episodes


class Count(NamedTuple):
    """A counter that ends at 6."""

    value: jax.Array


def step(state, action, key):
    return Count(state.value + 1), Outcome(jnp.float32(1), state.value >= 5, jnp.bool_(False))


COUNTER = Environment(
    id="counter",
    num_actions=2,
    observation_shape=(1,),
    reset=lambda key: Count(jnp.int32(0)),
    step=step,
    observe=lambda state: state.value.astype(jnp.float32)[None],
    longest=6,
)


def checked(**change):
    check_episodes(COUNTER._replace(**change), jax.random.key(0), num_steps=20, batch=3)


def outcome(**change):
    def stepped(state, action, key):
        after, outcome = step(state, action, key)
        return after, outcome._replace(**{name: f(state, outcome) for name, f in change.items()})

    return stepped


def test_what_is_right_passes_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked()
        checked(longest=None, step=outcome(terminated=lambda s, o: jnp.bool_(False)))  # never ends: no mistake
        checked(observe=lambda state: (state.value > 3)[None])  # a flag is finite


@pytest.mark.parametrize("change, said", [
    (dict(step=outcome(reward=lambda s, o: 1 / (s.value - 3))), r"a reward is not finite \(first at step 3 of game 0"),
    (dict(observe=lambda s: (0 / (s.value - 6))[None]), r"an observation is not finite \(first at step 5"),
    (
        dict(legal=lambda s: jnp.bool_([True, True]) & (s.value != 4)),
        r"no legal action, but the episode is not over \(first at step 4 of game 0\)",
    ),
    (dict(longest=5), r"longer than longest=5 \(first at step 5"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_its_step(change, said):
    with pytest.raises(ValueError, match=f"environment counter: .*{said}"):
        checked(**change)


def test_the_end_of_an_episode_needs_no_legal_action():
    checked(legal=lambda state: jnp.bool_([True, True]) & (state.value < 6))


def test_only_legal_actions_are_tried():
    bad = lambda state, action, key: step(Count(jnp.where(action == 1, 10**6, state.value)), action, key)
    seen = lambda state: jnp.where(state.value > 10**5, jnp.nan, 0.0)[None]
    with pytest.raises(ValueError, match="an observation is not finite"):
        checked(step=bad, observe=seen)
    checked(step=bad, observe=seen, legal=lambda state: jnp.bool_([True, False]))


def test_episodes_of_one_step_are_warned_of():
    with pytest.warns(UserWarning, match="every episode ends with its first step"):
        checked(step=outcome(terminated=lambda s, o: jnp.bool_(True)))


def test_chance_that_is_not_said_is_warned_of():
    rolled = lambda state, action, key: step(Count(state.value + jax.random.randint(key, (), 0, 2)), action, key)
    with pytest.warns(UserWarning, match=r"depends on step's key \(first at step \d+ of game \d\): set chance=True"):
        checked(step=rolled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked(step=rolled, chance=True)


def test_something_else_is_refused():
    with pytest.raises(ValueError, match="check_episodes: the environment is a int"):
        check_episodes(3, jax.random.key(0))
