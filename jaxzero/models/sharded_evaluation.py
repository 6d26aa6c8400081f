"""Sharded evaluation: one search on several devices, which share the positions to evaluate.

Every device holds the whole tree and makes all the walks; only the network's work is divided. It helps for one game, or
a few, with many leaves in parallel and a network that dominates the cost:

    mesh = jax.sharding.Mesh(jax.devices(), ("devices",))
    model = jaxzero.models.over_devices(models.perfect(game, network), mesh)
    policy = jax.jit(jaxzero.alphazero(model, 800, simulate=jaxzero.parallel(16)))     # 4 positions for each device

Each call costs a broadcast of the positions' answers. Many games need none of this: let each device search its own.
"""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from jaxzero.types import Keys, Model, Params, State

__all__ = ["over_devices"]


def over_devices(model: Model, mesh: Mesh) -> Model:
    """The same model; the positions that lanes ask for in one call are shared equally among all devices of a mesh.

    The root is one position per game, so each device evaluates it; likewise the positions of a search without lanes,
    which calls `Model.step`. Wrappers whose models cannot be divided (legal slots, evaluations kept, sampled actions,
    chance nodes) are not divided here either. It goes around `symmetry.drawn` and `with_decisive_moves`, not inside.
    Parameters must be on all devices, or on none in particular: `jax.device_put(params, NamedSharding(mesh,
    PartitionSpec()))`.

    Args:
        model: one that can be divided, as `models.perfect` and `models.rollout` make.
        mesh: the devices; all its axes are used, and all are left to the compiler (`AxisType.Auto`).

    Raises:
        ValueError: a model that cannot be divided; a mesh with other axes; when called, a number of positions, games
            times lanes, that is no multiple of the number of devices.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> network = lambda params, observation: (jnp.zeros((len(observation), 9)), observation[:, 0, 0, 0] / 2)
    >>> model = models.perfect(game, network)
    >>> model = jz.models.over_devices(model, jax.sharding.Mesh(jax.devices()[:1], ("devices",)))
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> policy = jax.jit(jz.alphazero(model, 32, simulate=jz.parallel(8)))
    >>> int(policy((), keys, jax.vmap(game.init)(keys)).info.summary.visits.sum())
    32
    """
    if model.move is None or model.evaluate is None:
        raise ValueError(
            "over_devices needs a model that separates evaluation from rules, but Model.move is None, or "
            "Model.evaluate is. Use models.perfect(game, network), or give Model.move and Model.evaluate."
        )
    if any(kind != AxisType.Auto for kind in mesh.axis_types):
        raise ValueError(
            f"over_devices with a mesh of axes {mesh.axis_types}: the axes must be Auto, so that the compiler shards. "
            f"Use jax.sharding.Mesh(devices, {mesh.axis_names}), or make_mesh(..., axis_types=(AxisType.Auto, ...))."
        )
    shared = PartitionSpec(mesh.axis_names)
    # No device needs another's positions, so there is nothing to check; loops in a network could not be checked.
    parts = jax.shard_map(
        model.evaluate, mesh=mesh, in_specs=(PartitionSpec(), shared, shared), out_specs=shared, check_vma=False
    )

    def evaluate(params: Params, keys: Keys, position: State) -> tuple[Array, Array]:
        if len(keys) % mesh.size:
            raise ValueError(
                f"{len(keys)} positions, games times lanes, for {mesh.size} devices: give each an equal share, like "
                f"parallel({mesh.size})."
            )
        everywhere = NamedSharding(mesh, PartitionSpec())
        return jax.lax.with_sharding_constraint(parts(params, keys, position), everywhere)

    return model._replace(evaluate=evaluate)
