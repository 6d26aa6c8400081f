"""The records for where mctx is not installed, against mctx's."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat.mctx import mctx_records as front


def test_records_take_parameters_and_refuse_positions():
    assert front.Tree[int] and front.PolicyOutput[None]
    with pytest.raises((TypeError, ValueError)):
        front.RootFnOutput(jnp.zeros((1, 2)), jnp.zeros(1), ())


RECORDS = [
    "RootFnOutput",
    "RecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "ChanceRecurrentFnOutput",
    "PolicyOutput",
    "GumbelMuZeroExtraData",
]


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_pytrees_with_mctx_fields(name):
    theirs, ours = getattr(mctx, name), getattr(front, name)
    fields = list(theirs.__dataclass_fields__)
    assert list(ours.__dataclass_fields__) == fields
    record = ours(**{field: np.full(2, i) for i, field in enumerate(fields)})
    doubled = jax.tree.map(lambda x: 2 * x, record)
    assert all((doubled[field] == 2 * i).all() for i, field in enumerate(fields))
    assert (record.replace(**{fields[0]: np.ones(2)})[fields[0]] == 1).all()


def test_a_tree_of_ones_own_making_answers_as_mctx_tree():
    rng, shape = np.random.default_rng(0), (2, 4, 3)
    fields = {
        name: rng.normal(size=shape if name.startswith("children") else shape[:2])
        for name in mctx.Tree.__dataclass_fields__
        if name.islower() and name not in ("root_invalid_actions", "extra_data", "embeddings")
    }
    fields |= dict(
        children_visits=rng.integers(4, size=shape),
        embeddings=(),
        root_invalid_actions=np.zeros((2, 3)),
        extra_data=None,
    )
    fields["children_visits"][1, 0] = 0  # an unvisited root: uniform
    theirs, ours = (lib.Tree(**jax.tree.map(jnp.asarray, fields)) for lib in (mctx, front))
    assert (ours.num_actions, ours.num_simulations) == (theirs.num_actions, theirs.num_simulations) == (3, 3)
    np.testing.assert_array_equal(ours.qvalues(jnp.array([1, 3])), theirs.qvalues(jnp.array([1, 3])))
    for name, value in theirs.summary().items():
        np.testing.assert_allclose(ours.summary()[name], value)


WITHOUT_MCTX = """
import sys
sys.modules["mctx"] = None  # as if it were not installed
import jax, jax.numpy as jnp
from jaxzero.compat import mctx as front
from jaxzero.compat.mctx import mctx_records
def model(params, key, action, embedding):
    zeros = jnp.zeros(2)
    return front.RecurrentFnOutput(reward=zeros, discount=zeros, value=zeros, prior_logits=jnp.zeros((2, 3))), embedding
root = front.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=jnp.zeros(2))
out = jax.eval_shape(lambda: front.gumbel_muzero_policy((), jax.random.key(0), root, model, 4))
assert type(out.search_tree) is mctx_records.Tree is front.Tree and type(out) is mctx_records.PolicyOutput
assert type(out.search_tree.extra_data) is mctx_records.GumbelMuZeroExtraData
print(jax.eval_shape(lambda tree: tree.summary(), out.search_tree).visit_probs.shape)
"""


def test_the_front_works_without_mctx():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MCTX], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "(2, 3)"
