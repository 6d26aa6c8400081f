"""A model whose functions, or their arguments, stand in the wrong places."""

import jax
import jax.numpy as jnp
import pytest

import jaxzero as jz
from jaxzero.search.checks.start_checks import check_model
from tests import worlds

KEYS, START = jax.random.split(jax.random.key(0), 2), jnp.zeros(2, jnp.int32)


def begin(params, keys, state):
    return worlds.model.root(params, keys, state)


def follow(params, keys, action, embedding):
    return worlds.model.step(params, keys, action, embedding)


def ask(model, build=lambda model: jz.uct(model, 2)):
    return jax.eval_shape(build(model), worlds.make(range(2)), KEYS, START)


BUILDS = {
    "alone": lambda model: jz.gumbel(model, 2),
    "in slots": lambda model: jz.options.with_legal_slots(lambda m: jz.gumbel(m, 2), model, 2),
    "kept": lambda model: jz.options.with_evaluations_kept(lambda m: jz.gumbel(m, 2), model),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_functions_that_are_swapped_are_said_to_be(build):
    wanted = r"Model\(root=follow, step=begin\): the two look swapped.*Write Model\(root=begin, step=follow\)\."
    for model in (jz.Model(follow, begin), jz.Model(step=jax.jit(begin), root=jax.jit(follow))):
        with pytest.raises(ValueError, match=wanted):
            ask(model, build)


@pytest.mark.parametrize(
    "model, says",
    [
        (jz.Model(lambda key, params, state: None, follow), r"model.root=<lambda> takes \(key, params, state\)"),
        (jz.Model(lambda state, params, rng: None, follow), r"takes \(state, params, rng\).*def root\(params, "),
        (jz.Model(begin, lambda params, rng, embedding, action: None), r"model.step=.*takes \(params, rng, embedding,"),
        (jz.Model(begin, lambda params, keys, state, action, more=3: None), r"called with \(params, keys, action, emb"),
        (jz.Model(begin, lambda params, action, embedding: None), r"model.step=.*but does not accept that.*def step\("),
        (jz.Model(lambda params, observation: None, follow), r"model.root=.*but does not accept that.*def root\("),
        (jz.Model(begin, begin), r"model.step=begin: it will be called with \(params, keys, action, embedding\)"),
    ],
)
def test_arguments_that_are_others(model, says):
    with pytest.raises(ValueError, match=says):
        ask(model)


@pytest.mark.parametrize(
    "model",
    [
        jz.Model(lambda a, b, c: begin(a, b, c), lambda *args: follow(*args)),
        jz.Model(lambda params, _, observation: begin(params, _, observation), jax.jit(follow)),
        jz.Model(begin, lambda params, rng_key, actions, state, more=None: follow(params, rng_key, actions, state)),
    ],
)
def test_other_names_in_the_right_places_are_taken(model):
    check_model(model)
