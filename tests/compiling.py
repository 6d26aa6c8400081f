"""Compiler options of tests: quick compilation, unless a test examines the program that users have."""

import jax


def as_users_have_it() -> dict[str, bool]:
    """`compiler_options` that undo the XLA flags of `tests/conftest.py`; with `@pytest.mark.optimised`, all of them."""
    return {"xla_cpu_use_fusion_emitters": True} if jax.default_backend() == "cpu" else {}
