"""JAX's flags and transforms, around the front as around mctx."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import Mesh, PartitionSpec

from jaxzero.compat import mctx as front
from tests.compat import pairs
from tests.compat.test_stochastic import A, stochastic_fns

POLICIES = ["muzero_policy", "gumbel_muzero_policy", "stochastic_muzero_policy"]
OPTIONS = {"muzero_policy": {"temperature": 0.0}, "gumbel_muzero_policy": {}, "stochastic_muzero_policy": {}}


def search(policy, lib, world, invalid):
    """The action and its weights, and the visits of the tree."""
    model = stochastic_fns(lib) if policy == "stochastic_muzero_policy" else [pairs.step(lib)]
    out = getattr(lib, policy)(
        world,
        jax.random.key(1),
        pairs.root(lib, world),
        *model,
        8,
        invalid_actions=invalid.astype(jnp.float32),
        **OPTIONS[policy],
    )
    return out.action, out.action_weights, out.search_tree.node_visits


@contextlib.contextmanager
def flag(name, value):
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def jitted(run, *args):
    return jax.jit(run)(*args)


def checkified(run, *args):
    errors, out = jax.jit(checkify.checkify(run, errors=checkify.float_checks))(*args)
    return out, errors.get()


def mapped(run, *args):
    return jax.jit(jax.vmap(run))(*jax.tree.map(lambda x: jnp.stack([x, x]), args))


def sharded(run, *args):
    mesh = Mesh(np.array(jax.devices()[:1]), ("games",))
    here = PartitionSpec("games")
    return jax.jit(jax.shard_map(run, mesh=mesh, in_specs=here, out_specs=here, check_vma=False))(*args)


def donated(run, *args):
    return jax.jit(run, donate_argnums=(0, 1))(*jax.tree.map(jnp.copy, args))


AROUND = {
    "rank_promotion": (functools.partial(flag, "jax_numpy_rank_promotion", "raise"), jitted),
    "strict types": (functools.partial(flag, "jax_numpy_dtype_promotion", "strict"), jitted),
    "x64": (functools.partial(flag, "jax_enable_x64", True), jitted),
    "debug_nans": (functools.partial(flag, "jax_debug_nans", True), jitted),
    "debug_infs": (functools.partial(flag, "jax_debug_infs", True), jitted),
    "checkify": (contextlib.nullcontext, checkified),
    "vmap": (contextlib.nullcontext, mapped),
    "shard_map": (contextlib.nullcontext, sharded),
    "donated": (contextlib.nullcontext, donated),
}


def outcome(context, around, run, args):
    """What comes out, or the type of the error."""
    try:
        with context:
            return jax.device_get(around(run, *args))
    except Exception as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize(
    "policy", [pytest.param(x, marks=[pytest.mark.exhaustive] * (x != "gumbel_muzero_policy")) for x in POLICIES]
)
def test_results_are_mctx_results(policy, name):
    world, invalid = pairs.make(4, num_actions=A, dtype=np.float32)
    make, around = AROUND[name]
    theirs, ours = (
        outcome(make(), around, functools.partial(search, policy, lib), (world, invalid)) for lib in (mctx, front)
    )
    if isinstance(ours, Exception):
        raise ours
    if isinstance(theirs, Exception):  # mctx does not work there; the front gives what it gives otherwise
        theirs = around(functools.partial(search, policy, front), world, invalid)
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-4), ours, theirs)
