"""Functions that do not fit the record of an environment are named, before anything is compiled."""

import jax
import jax.numpy as jnp
import pytest

from jaxzero import environments, games
from jaxzero.environments import Outcome

CART = environments.cartpole()


def stepped(change):
    """A step whose state or outcome is changed."""
    return lambda state, action, key: change(*CART.step(state, action, key))


def test_what_fits_passes():
    environments.check_steps(CART)
    environments.check_steps(CART._replace(legal=lambda state: jnp.bool_([True, False])))
    environments.check_steps(CART._replace(observe=lambda state: state.motion > 0))
    environments.check_steps(CART._replace(observe=lambda state: state.motion.astype(jnp.uint8)))


@pytest.mark.parametrize("change, said", [
    (dict(step=stepped(lambda s, o: (s._replace(time=jnp.float32(0)), o))),
     r"step changes state.time from int32\[\] to float32\[\]: keep shape and type"),
    (dict(step=stepped(lambda s, o: (s._replace(motion=s.motion[:3]), o))), r"state.motion from float32\[4\]"),
    (dict(step=stepped(lambda s, o: (tuple(s), o))), "another structure than reset"),
    (dict(step=stepped(lambda s, o: (s, o._replace(reward=s.motion)))), r"the reward of step returns float32\[4\]"),
    (dict(step=stepped(lambda s, o: (s, o._replace(reward=s.time)))), r"the reward of step returns int32\[\].*float32"),
    (dict(step=stepped(lambda s, o: (s, o._replace(terminated=o.reward)))), r"terminated of step returns float32\[\]"),
    (dict(step=stepped(lambda s, o: (s, o._replace(truncated=s.time)))), r"truncated of step returns int32\[\].*bool"),
    (dict(step=stepped(lambda s, o: s)), r"step.* returns PyTreeDef.*return \(state, Outcome\("),
    (dict(step=stepped(lambda s, o: (s, o, {}))), r"return \(state, Outcome\("),
    (dict(step=lambda state, action: CART.step(state, action, None)), r"step\(state, action, key\) fails.*TypeError"),
    (dict(step=lambda s, a, k: CART.step(s, a, k) if a else CART.step(s, a, k)), "step.*fails.*jnp.where"),
    (dict(legal=lambda state: jnp.ones(3, bool)), r"legal\(state\) returns bool\[3\].*bool\[2\] \(num_actions is 2\)"),
    (dict(legal=lambda state: jnp.ones(2)), r"legal\(state\) returns float32\[2\]"),
    (dict(observe=lambda state: state.motion[:2]), r"observe\(state\) returns float32\[2\].*number\[4\]"),
    (dict(observe=lambda state: state.motion * 1j), r"observe\(state\) returns complex64\[4\]"),
    (dict(observe=lambda state: state.nothing), r"fails \(test_environment_checks.py, line \d+\): AttributeError"),
    (dict(reset=lambda: 0), r"reset\(key\) fails"),
    (dict(id="a b"), "its id must be a word"),
    (dict(num_actions=0), "num_actions is 0"),
    (dict(num_actions=jnp.int32(2)), "num_actions is Array"),
    (dict(num_players=3), "num_players is 3: give 1, or 2"),
    (dict(discount=0.0), "discount is 0.0"),
    (dict(discount=1.01), "discount is 1.01"),
    (dict(observation_shape=4), "observation_shape is 4"),
    (dict(observation_shape=(0,)), r"observation_shape is \(0,\)"),
])  # fmt: skip
def test_what_does_not_fit_is_named(change, said):
    with pytest.raises(ValueError, match=f"(?s)environment .*{said}"):
        environments.check_steps(CART._replace(**change))


def test_an_outcome_of_numbers_is_refused():
    plain = CART._replace(step=stepped(lambda s, o: (s, Outcome(1.0, False, False))))
    environments.check_steps(plain)  # weak types are numbers of the right kind, too
    with pytest.raises(ValueError, match="the reward of step"):
        environments.check_steps(CART._replace(step=stepped(lambda s, o: (s, Outcome(1, False, False)))))


def test_something_else_is_refused():
    with pytest.raises(ValueError, match="is a str. Give an Environment"):
        environments.check_steps("cartpole")
    with pytest.raises(ValueError, match=r"is a Game: use environments.from_game\(game\)"):
        environments.check_steps(games.go(5))


def test_nothing_is_compiled():
    jax.clear_caches()  # of earlier tests, which may have compiled the same
    events = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *a, **k: events.append(name))
    environments.check_steps(CART)
    assert not [event for event in events if "backend_compile" in event]
