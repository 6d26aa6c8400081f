"""What `bench_gpu.py` searches: a world that costs nothing, and games with residual networks; and their arithmetic."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from bench import hash_world
from bench.overhead import positions

import jaxzero as jz
from jaxzero import games, models, nets

__all__ = [
    "NAMES",
    "PLIES",
    "STUB_ACTIONS",
    "World",
    "flop",
    "game_by_name",
    "game_loop",
    "looked_at",
    "network_loop",
    "peak",
    "plays",
    "rule",
    "world",
]

STUB_ACTIONS = 82  # as Go 9x9 has
PLIES = 24
LOGITS = 2 * math.pi / math.sqrt(3)  # their standard deviation, as `hash_world` draws them
NAMES = {"stub": "stub", "connect_four": "Connect Four", "go": "Go 9x9"}
# Peak TFLOP/s of dense bfloat16 matrix products (without sparsity), by jax's name of the device.
PEAKS = {"H100 80GB HBM3": 790.0, "H200": 790.0}  # variants have other clocks


class World(NamedTuple):
    """A model and positions to search from."""

    model: jz.Model
    params: Any
    keys: jax.Array
    states: Any
    network: Callable | None = None  # None: there is none, and no game
    game: games.Game | None = None
    layers: str = ""
    actions: Any = None  # random play from the states on, `[PLIES, B]`


def rule() -> jz.Rule:
    """The rule of all these searches: that of mctx's muzero_policy, with unscaled values."""
    return jz.muzero_puct(qvalues=jz.search.raw())


def game_by_name(name: str) -> games.Game:
    return games.go(9) if name == "go" else games.from_pgx(name)


def world(name: str, batch: int, config: Any) -> World:
    """The stub, `connect_four` or `go`, with that many games after six random plies."""
    return _world(name, batch, getattr(config, f"{name}_network", ""), config.dtype)


@functools.cache  # rows of several parts begin alike
def _world(name: str, batch: int, layers: str, dtype: str) -> World:
    keys = jax.random.split(jax.random.key(0), batch)
    if name == "stub":
        return World(hash_world.model(STUB_ACTIONS), (), keys, hash_world.roots(batch))
    game, (blocks, channels) = game_by_name(name), map(int, layers.split("x"))
    network, params = _network(game, blocks, channels, dtype)
    states = jax.block_until_ready(jax.jit(lambda: positions(game, keys))())
    params = nets.to_bfloat16(network, sharpened(network, params, jax.vmap(game.observe)(states)))  # once, as plays do
    actions = plays(game, states, PLIES)
    return World(models.perfect(game, network), params, keys, states, network, game, f"{layers} {dtype}", actions)


@functools.cache
def _network(game: games.Game, blocks: int, channels: int, dtype: str) -> tuple:
    return nets.resnet(game, channels, blocks, key=jax.random.key(0), dtype=jnp.dtype(dtype))


def sharpened(network: Callable, params: Any, observation: jax.Array) -> Any:
    """The parameters, scaled so that the logits spread as a trained network's do; otherwise trees would be flat."""
    logits, _ = jax.jit(network)(params, observation)
    factor = LOGITS / jnp.maximum(jnp.std(logits), 1e-6)
    return params | {"policy": jax.tree.map(lambda x: x * factor, params["policy"])}


def looked_at(x: jax.Array, seen: jax.Array) -> jax.Array:
    """Returns `x`, but keeps XLA from removing the computation of `seen`, which never has the numbers tested for."""
    return jnp.where(jnp.min(seen.astype(jnp.float32)) < -1e30, jnp.zeros_like(x), x)


# ------------------------------------------------------------------------------------------- the network, and the game
def network_loop(world: World, calls: int) -> Callable:
    """`(params, observation) -> value` by `calls` calls of the network, each of which waits for the one before."""

    def loop(params: Any, observation: jax.Array) -> jax.Array:
        def turn(_: Any, value: jax.Array) -> jax.Array:
            logits, value = world.network(params, looked_at(observation, value))
            return looked_at(value, logits)

        return jax.lax.fori_loop(0, calls, turn, jnp.zeros(len(observation)))

    return loop


def plays(game: games.Game, states: Any, plies: int) -> jax.Array:
    """Random legal actions from these positions on `[plies, B]`; 0 where the game is over."""

    def ply(states: Any, key: jax.Array) -> tuple:
        legal = jax.vmap(game.legal)(states)
        action = jnp.argmax(jnp.where(legal, jax.random.uniform(key, legal.shape), -1), 1).astype(jnp.int32)
        return jax.vmap(game.step)(states, action, jax.random.split(key, len(action))), action

    keys = jax.random.split(jax.random.key(1), plies)
    return jax.block_until_ready(jax.jit(lambda states: jax.lax.scan(ply, states, keys)[1])(states))


def game_loop(game: games.Game, calls: int, plies: int) -> Callable:
    """`(keys, states, actions [plies, B]) -> numbers` by steps of the game, with what is legal, seen and paid.

    Starts again and again from the same positions, `plies` plies each time, for at least `calls` steps in all.
    """

    def ply(carry: tuple, action: jax.Array) -> tuple:
        keys, states, total = carry
        states = jax.vmap(game.step)(states, action, keys)
        say = lambda name: jax.vmap(getattr(game, name))(states)
        told = looked_at(say("rewards")[:, 0], say("observe"))
        told = looked_at(looked_at(told, say("legal")), say("terminal"))
        return (keys, states, total + told), None

    def loop(keys: jax.Array, states: Any, actions: jax.Array) -> jax.Array:
        def turn(_: Any, total: jax.Array) -> jax.Array:  # depends on the iteration before, or XLA would hoist it
            return jax.lax.scan(ply, (keys, states, total), looked_at(actions, total))[0][2]

        return jax.lax.fori_loop(0, -(-calls // plies), turn, jnp.zeros(actions.shape[1]))

    return loop


# -------------------------------------------------------------------------------------------------------- arithmetic
def flop(function: Callable, *args: Any) -> int:
    """Floating-point operations of the convolutions and matrix products in a call: two for each product and sum."""
    return _flop(jax.make_jaxpr(function)(*args).jaxpr)


def _flop(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inputs, outputs = ([x.aval.shape for x in side] for side in (equation.invars, equation.outvars))
        if equation.primitive.name == "conv_general_dilated":
            spec = equation.params["dimension_numbers"].rhs_spec  # out features, in features, places
            total += 2 * math.prod(outputs[0]) * math.prod(inputs[1][i] for i in spec[1:])
        elif equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            total += 2 * math.prod(outputs[0]) * math.prod(inputs[0][i] for i in contracted)
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            inner = getattr(inner, "jaxpr", inner)
            total += _flop(inner) if hasattr(inner, "eqns") else 0
    return total


def peak(config: Any) -> float | None:
    """Peak TFLOP/s of the device, from `--peak-tflops` or the table; None if unknown."""
    if config.peak_tflops is not None:
        return config.peak_tflops
    if config.dtype != "bfloat16":
        return None
    kind = jax.devices()[0].device_kind
    return next((tflops for name, tflops in PEAKS.items() if name in kind), None)
