"""Setup that all tests share.

How tests share code: `tests` is a package and the repository's root is on the path, so a module that is not itself a
test is imported by its full name, `from tests import reference` or `from tests.worlds import bandit`. (pgx installs a
top-level package called `tests` too: the root comes first on the path, and `tests/__init__.py` must stay.) Folders
below `tests/` mirror `jaxzero/` and need no `__init__.py`.

Where tests run: on the CPU, unless the caller says otherwise (`JAX_PLATFORMS=cuda make test`). Two worker processes
share the machine, so no test should need more than about 2 GB.

Compiled programs are cached in `.cache/`, so a second run of the suite skips most of the compiling. Traces, compilation
events and the text of a compiled program are the same with and without the cache. Compile times are not, so no test may
measure them. `JAX_COMPILATION_CACHE_DIR= make test` does without the cache.

Slow tests are those marked so, and those in `slow_tests.txt`, which took more than 1.0 seconds with nothing compiled
before; `make slow-tests` measures and rewrites that list. Exhaustive tests are those marked so, and those in
`exhaustive_tests.txt`: variants of other tests, and tests that CI has no time for.
"""

import gc
import itertools
import os
import pathlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # on a GPU: two workers, one memory
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).parent.parent / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# Three quarters of what tests take is compiling, and XLA's older code generators for the CPU compile twice as quickly;
# in one piece, for one core, a program takes a seventh less than in the pieces that many cores would compile at once.
# If the caller sets flags, or none (`XLA_FLAGS= make test`), everything is compiled as users have it.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
QUICKLY = os.environ.setdefault("XLA_FLAGS", QUICK) == QUICK

SLOW, EXHAUSTIVE = (
    frozenset(pathlib.Path(__file__).with_name(f"{kind}_tests.txt").read_text().splitlines())
    for kind in ("slow", "exhaustive")
)

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

# The first example of a test pays for a compilation, so a deadline would measure XLA; and a failure must be the same
# failure tomorrow, so examples are drawn from the test's name and not from the clock.
hypothesis.settings.register_profile("jaxzero", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("jaxzero")

# Most programs of tests run for milliseconds: they are compiled with few of LLVM's optimisations, too, unless marked
# as `optimised`. So are those of the commands that tests start, which read the environment.
FEW = "JAX_DISABLE_MOST_OPTIMIZATIONS"
jax.config.update("jax_disable_most_optimizations", QUICKLY)
os.environ[FEW] = str(QUICKLY)
COMPILES = {"few optimisations": QUICKLY}


def pytest_collection_modifyitems(items):
    """Marks the tests in the lists as slow or exhaustive."""
    for item in items:
        if item.nodeid in SLOW | EXHAUSTIVE:
            item.add_marker(pytest.mark.slow)
        if item.nodeid in EXHAUSTIVE:
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(autouse=True)
def optimised(request):
    """Compiles tests marked `optimised` with all of LLVM's optimisations, whatever was compiled before."""
    few = QUICKLY and request.node.get_closest_marker("optimised") is None
    if COMPILES["few optimisations"] != few:
        jax.config.update("jax_disable_most_optimizations", few)
        os.environ[FEW] = str(few)
        jax.clear_caches()  # the cache key does not include the setting
        COMPILES["few optimisations"] = few


# Linux lets a process map 65,530 pieces of memory, and XLA crashes beyond. A compiled program is some twenty to a
# hundred of them, so many tests in one process must drop what earlier ones compiled.
MAPS, MANY, TESTS = pathlib.Path("/proc/self/maps"), 20_000, itertools.count()


@pytest.fixture(autouse=True)
def few_programs():
    """Drops the programs of earlier tests when there are many."""
    yield
    if next(TESTS) % 8 == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY:
        jax.clear_caches()
        gc.collect()
