"""jaxzero: fully vectorised, batched Monte Carlo tree search for JAX.

    game        = games.from_pgx("connect_four")
    net, params = nets.resnet(game, channels=64, blocks=6, key=jax.random.key(0))
    policy      = jaxzero.gumbel(models.perfect(game, net), num_simulations=32)
    out         = jax.jit(policy)(params, keys, states)      # out.action, out.action_weights, out.value, out.tree

What most programs need is here. The rest is in the modules that own it:

    jaxzero.search      the algorithm: plant, simulate, descend, expand, backup; rules, Q-value transforms
    jaxzero.root        at the root: exploration, Gumbel search, targets, schedules, what was found
    jaxzero.options     lanes, ask and tell, graph search, proofs, early stopping, reuse, slots, sampled actions
    jaxzero.policies    alphazero, gumbel, muzero, uct
    jaxzero.models      perfect, rollout, learned; games of chance, symmetries, several devices
    jaxzero.games, nets, train, runs, play, viz

Each is imported when it is first used: `import jaxzero` alone takes no time, and a search needs jax, chex and jaxtyping
only.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxzero.compilation_cache import keep_programs
    from jaxzero.options import advance, avoid_proven, decided, parallel, solved, transpositions
    from jaxzero.policies import alphazero, gumbel, muzero, uct
    from jaxzero.root import (
        best_value,
        by_temperature,
        dirichlet,
        forced_playouts,
        most_visited,
        playout_cap,
        principal_variation,
        qvalues,
        summary,
    )
    from jaxzero.search import COMPACT, Layout, Status, Tree, muzero_puct, puct, ucb1
    from jaxzero.types import EdgeView, Model, PolicyOutput, Rule, Step

__version__ = "0.1.0"

__all__ = [
    "COMPACT",
    "EdgeView",
    "Layout",
    "Model",
    "PolicyOutput",
    "Rule",
    "Status",
    "Step",
    "Tree",
    "advance",
    "alphazero",
    "avoid_proven",
    "best_value",
    "by_temperature",
    "decided",
    "dirichlet",
    "forced_playouts",
    "gumbel",
    "keep_programs",
    "most_visited",
    "muzero",
    "muzero_puct",
    "parallel",
    "playout_cap",
    "principal_variation",
    "puct",
    "qvalues",
    "solved",
    "summary",
    "transpositions",
    "ucb1",
    "uct",
]

HOMES = {
    "policies": "alphazero gumbel muzero uct",
    "types": "EdgeView Model PolicyOutput Rule Step",
    "search": "COMPACT Layout Status Tree muzero_puct puct ucb1",
    "root": "best_value by_temperature dirichlet forced_playouts most_visited playout_cap principal_variation qvalues "
    "summary",
    "options": "advance avoid_proven decided parallel solved transpositions",
    "compilation_cache": "keep_programs",
}
ROOMS = (
    "compat",
    "games",
    "models",
    "nets",
    "options",
    "play",
    "policies",
    "root",
    "runs",
    "search",
    "train",
    "types",
    "viz",
)


OWNERS = ("search", "root", "options", "policies", "models", "games", "types")  # where a name may have moved


def __getattr__(name: str) -> Any:
    for room, names in HOMES.items():
        if name in names.split():
            module = importlib.import_module(f"jaxzero.{room}")
            globals().update({known: getattr(module, known) for known in names.split()})
            return globals()[name]
    if name in ROOMS:
        return importlib.import_module(f"jaxzero.{name}")
    owners = [room for room in OWNERS if _has(room, name)]
    instead = f" It is jaxzero.{owners[0]}.{name}." if owners else ""
    raise AttributeError(f"module 'jaxzero' has no attribute {name!r}.{instead}")


def _has(room: str, name: str) -> bool:
    module = importlib.import_module(f"jaxzero.{room}")
    return hasattr(module, name) and name in getattr(module, "__all__", (name,))


def __dir__() -> list[str]:
    return sorted([*__all__, *ROOMS, "__version__"])
