import jax
import pytest


@pytest.fixture
def x64():
    """In float64 two ways to add up the same numbers do not turn near-ties around."""
    with jax.enable_x64(True):
        yield
