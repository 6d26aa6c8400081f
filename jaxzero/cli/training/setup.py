"""Builds what the training loop calls: network, search, self-play, learner, on all devices."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

import jaxzero as jz
from jaxzero import games, models, nets
from jaxzero.cli.evaluation_search import provable
from jaxzero.cli.training.evaluation import Rating
from jaxzero.cli.training.network_setup import inputs, network
from jaxzero.cli.training.settings import Config, for_game
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.search.qvalues import completed_by_mix_value
from jaxzero.train import devices, learner, replay, selfplay
from jaxzero.train.bootstrap_values import with_greedy_value, with_improved_value
from jaxzero.train.devices import EVERYWHERE, SHARED
from jaxzero.train.muon import DIRECTIONS

__all__ = ["Run", "build", "expected", "filled", "minibatches", "newest", "policy"]

WHERE = {"games": SHARED, "buffer": SHARED, "learner": EVERYWHERE, "rating": EVERYWHERE}


class Run(NamedTuple):
    """The functions that the loop calls. The state that `begin` returns is the whole run, and all of a checkpoint.

    Attributes:
        net: `(params, observation) -> (logits, value)`.
        params: those that the run begins with.
        begin: `params -> state`, with games, replay and learner.
        play: `(params, games) -> (games, rows, ready, stats)`.
        add: `(buffer, rows, ready) -> buffer`.
        update: `(learner, buffer, keys, learning_rate, newest) -> (learner, losses)`.
        tell: `(stats, buffer, learner) -> numbers` that every host can read.
        keys: `step -> keys` of the learner, one per part.
    """

    net: Callable
    params: Any
    begin: Callable
    play: Callable
    add: Callable
    update: Callable
    tell: Callable
    keys: Callable


def filled(config: Config, game: games.Game) -> Config:
    """The settings with the game's defaults where none was given; settings that were given stay."""
    return for_game(
        config,
        game.num_actions,
        chance=game.outcomes is not None,
        rescale=not provable(game),
        inputs=inputs(config.network, game),
    )


def policy(config: Config, game: games.Game, net: Callable) -> Callable:
    """The search of self-play."""
    own = filled(config, game).selfplay
    considered = min(own.max_considered, own.simulations)
    wrap = jz.avoid_proven if own.prove and provable(game) else None
    qvalues = completed_by_mix_value(value_scale=own.value_scale, rescale_values=own.rescale_values)
    given = dict(max_considered=considered, wrap=wrap, qvalues=qvalues)
    values = {"mean": lambda search: search, "greedy": with_greedy_value, "improved": with_improved_value}
    search = lambda model: values[own.bootstrap](jz.gumbel(model, own.simulations, **given))
    return with_listed_outcomes(search, models.perfect(game, net), game)


def minibatches(config: Config) -> int:
    """The number of minibatches per iteration."""
    return max(1, round(config.selfplay.games * config.selfplay.plies * config.learn.reuse / config.learn.batch_size))


def newest(config: Config, step: int) -> int:
    """How many of the latest rows are sampled from."""
    rows = config.selfplay.games * config.selfplay.plies * step
    return min(max(config.learn.start, int(config.learn.newest * rows)), config.learn.capacity)


def _check(config: Config, game: games.Game, mesh: Any) -> None:
    """Raises a ValueError where numbers do not fit one another, or the devices."""
    own, learn = config.selfplay, config.learn
    devices.check_shares(mesh.size, learn.parts, games=own.games, batch_size=learn.batch_size)
    if learn.playing_decay is not None and learn.playing_decay > learn.average_decay:
        raise ValueError(
            f"--learn.playing-decay {learn.playing_decay} is above --learn.average-decay {learn.average_decay}: "
            "self-play would use the longer average. Use less, or None for one average."
        )
    if own.stop_proven and not own.prove:
        raise ValueError("--selfplay.stop-proven without --selfplay.prove: nothing would be proven. Give both.")
    if own.stop_proven and not provable(game):
        raise ValueError(
            "--selfplay.stop-proven: values can only be proven in two-player games without chance. Leave it out."
        )
    least = own.games * (own.window + own.plies)  # the most rows that may arrive at once
    if learn.capacity < least:
        raise ValueError(
            f"--learn.capacity {learn.capacity} is too little for {own.games} games with {own.window} plies waiting "
            f"and {own.plies} new ones: use {least} or more."
        )
    if learn.start > learn.capacity:
        raise ValueError(
            f"--learn.start {learn.start} with --learn.capacity {learn.capacity}: learning would never begin. "
            f"Use --learn.start {learn.capacity} or less, or a larger capacity."
        )


def _self_play(config: Config, game: games.Game, net: Callable) -> tuple[Callable, Callable]:
    own = config.selfplay
    return selfplay.self_play(
        game,
        policy(config, game, net),
        selfplay.exploring(own.random_plies, own.random_rate, trace=own.trace, tolerance=own.tolerance),
        plies=own.plies,
        window=own.window,
        max_opening_plies=own.max_opening_plies,
        softness=own.softness,
        over=jz.solved if own.stop_proven else None,
    )


def _learner(config: Config, game: games.Game, net: Callable, mesh: Any) -> tuple[Callable, Callable]:
    learn = config.learn
    return learner.learner(
        game,
        net,
        batch_size=learn.batch_size,
        weight_decay=learn.weight_decay,
        average_decay=learn.average_decay,
        playing_decay=learn.playing_decay,
        policy_temperature=learn.policy_temperature,
        value_weight=learn.value_weight,
        value_loss={"squared": learner.squared_error, "score": learner.score_cross_entropy}[learn.value_loss],
        direction=DIRECTIONS[learn.optimiser](),
        devices=(devices.AXIS, mesh.size),
    )


def build(config: Config, game: games.Game, mesh: Any, initial: Any = None) -> Run:
    """Builds everything for these settings on these devices.

    Args:
        config: the settings.
        game: what is learned.
        mesh: of the devices.
        initial: parameters to begin with; None: untrained ones.

    Raises:
        ValueError: numbers that do not fit one another, or the devices.
    """
    _check(config, game, mesh)
    own, learn = config.selfplay, config.learn
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    net, params = network(config.network, game, key)
    params = params if initial is None else initial
    rounded, _ = network(config.network, game, key, own.dtype)
    learning, _ = network(config.network, game, key, learn.dtype)
    begin_play, play_some = _self_play(config, game, rounded)
    begin_learning, update = _learner(config, game, learning, mesh)
    play = lambda params, games: play_some(nets.to_bfloat16(rounded, params), games)  # rounded once, if at all
    number = minibatches(config)
    learn_some = lambda state, buffer, keys, rate, newest: update(state, buffer, keys, rate, number, newest)
    shape = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.float32)
    value = shape(game.num_players) if game.num_players > 2 else shape()
    row = selfplay.Row(shape(*game.observation_shape), shape(game.num_actions), value)
    on_devices = lambda function, takes, gives: devices.on_every_device(function, mesh, takes, gives)

    def begin(params: Any) -> dict[str, Any]:
        params = jax.tree.map(jnp.copy, params)  # a copy of its own: the learner's buffers are donated at every step
        return {
            "games": begin_play(jax.random.fold_in(jax.random.key(config.seed), 2), own.games),
            "buffer": replay.new_buffer(row, learn.capacity, learn.parts),
            "learner": begin_learning(params),
            "rating": Rating(jnp.float32(0), params),
        }

    def tell(stats: selfplay.Stats, buffer: replay.Buffer, state: learner.Learner) -> dict[str, Any]:
        numbers = jax.tree.map(jnp.sum, stats)._asdict()
        sizes = {"rows": buffer.size.sum(), "least": buffer.size.min()}
        return numbers | sizes | {"minibatches": state.steps}

    split = lambda step: jax.random.split(jax.random.fold_in(jax.random.key(config.seed), step + 3), learn.parts)
    return Run(
        net=net,
        params=params,
        begin=jax.jit(begin, out_shardings={name: NamedSharding(mesh, where) for name, where in WHERE.items()}),
        play=jax.jit(on_devices(play, (EVERYWHERE, SHARED), SHARED), donate_argnums=1),
        add=jax.jit(on_devices(replay.add, SHARED, SHARED), donate_argnums=0),
        update=jax.jit(
            on_devices(learn_some, (EVERYWHERE, SHARED, SHARED, EVERYWHERE, EVERYWHERE), EVERYWHERE), donate_argnums=0
        ),
        tell=devices.place(tell, mesh, EVERYWHERE),
        keys=devices.place(split, mesh, SHARED),
    )


def expected(run: Run, mesh: Any) -> dict[str, Any]:
    """The shapes of the state, and where its arrays belong."""
    put = lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, where))
    shapes = jax.eval_shape(run.begin, run.params)
    return {name: jax.tree.map(lambda x, w=WHERE[name]: put(x, w), part) for name, part in shapes.items()}
