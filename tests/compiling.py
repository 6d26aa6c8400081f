"""How tests compile: quickly, unless what is looked at is the program that users have."""

import jax


def as_users_have_it() -> dict[str, bool]:
    """`compiler_options` that undo what `tests/conftest.py` asks of XLA; with `@pytest.mark.optimised`, all of it."""
    return {"xla_cpu_use_fusion_emitters": True} if jax.default_backend() == "cpu" else {}
