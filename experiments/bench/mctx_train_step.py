"""One iteration of the baseline (`mctx_baseline.py`), as a pure function: play with mctx and pgx, then learn."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import optax
import pgx

from jaxzero import games
from jaxzero.cli.training.network_setup import network
from jaxzero.models.chance import select_rows

__all__ = ["Loop", "Rows", "begin", "build", "loss", "move", "order", "outcomes", "searcher"]


class Played(NamedTuple):
    """One move of every game: `[T, B, ...]`."""

    observation: Any
    policy: Any
    reward: Any  # for the player who moved
    ended: Any


class Rows(NamedTuple):
    """Training rows: `[n, ...]`."""

    observation: Any
    policy: Any
    value: Any  # the outcome for the player to move
    known: Any  # False: the game did not end within these moves


class Loop(NamedTuple):
    """Everything that one iteration passes to the next."""

    state: Any  # of the games in flight
    params: Any
    opt_state: Any
    kept: Any  # rows of the latest iterations `[replay * n, ...]`
    iteration: Any
    key: Any


def searcher(env: pgx.Env, net: Callable, simulations: int) -> Callable:
    """`search(params, key, state, gumbel_scale=1.0)`: mctx's Gumbel policy, the rules of the game being known."""

    def evaluate(params, state):
        logits, value = net(params, state.observation.astype(jnp.float32))
        return jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min), value

    def step(params, key, action, state):
        del key
        mover = state.current_player
        state = jax.vmap(env.step)(state, action)
        logits, value = evaluate(params, state)
        return mctx.RecurrentFnOutput(
            reward=_of(mover, state.rewards),
            discount=jnp.where(state.terminated, 0.0, -1.0),  # the next value is the other player's
            prior_logits=logits,
            value=jnp.where(state.terminated, 0.0, value),
        ), state

    def search(params, key, state, gumbel_scale=1.0):
        logits, value = evaluate(params, state)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        invalid = ~state.legal_action_mask
        return mctx.gumbel_muzero_policy(
            params, key, root, step, simulations, invalid_actions=invalid, gumbel_scale=gumbel_scale
        )

    return search


def _of(player, rewards):
    return jnp.take_along_axis(rewards, player[:, None], 1)[:, 0]


def begin(env: pgx.Env, key: Any, number: int) -> Any:
    """New games. pgx's initial states hold weak types, which would cause a second compilation."""
    states = jax.vmap(env.init)(jax.random.split(key, number))
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), states)


def move(env: pgx.Env, search: Callable, params: Any, state: Any, key: Any) -> tuple[Any, Played]:
    """A move in each game. Ended games begin anew, without the mark: with it, a search would see no moves."""
    k_search, k_begin = jax.random.split(key)
    out = search(params, k_search, state)
    after = jax.vmap(env.step)(state, out.action)
    ended = after.terminated
    played = Played(state.observation, out.action_weights, _of(state.current_player, after.rewards), ended)
    fresh = begin(env, k_begin, len(ended))
    return select_rows(ended, fresh, after), played


def outcomes(reward: Any, ended: Any) -> tuple[Any, Any]:
    """The outcome of each move's game for the player who made it, and whether it is known: `[T, B]` each.

    Computed backwards: the reward of a game's last move; before it the next move's outcome, with the other sign.
    """

    def back(later, now):
        value, known = later
        reward, ended = now
        here = jnp.where(ended, reward, -value), known | ended
        return here, here

    nothing = jnp.zeros_like(reward[0]), jnp.zeros_like(ended[0])
    return jax.lax.scan(back, nothing, (reward, ended), reverse=True)[1]


def loss(net: Callable, params: Any, rows: Rows) -> tuple[Any, tuple[Any, Any]]:
    """Cross-entropy with the search's policy plus squared error where the outcome is known; and both separately."""
    logits, value = net(params, rows.observation.astype(jnp.float32))
    policy = optax.softmax_cross_entropy(logits, rows.policy).mean()
    error = (jnp.square(value - rows.value) * rows.known).mean()
    return policy + error, (policy, error)


def order(config: Any, key: Any, rows: int, filled: Any) -> Any:
    """The rows of the minibatches: indices `[minibatches, batch_size]`; the remainder is left out."""
    if config.replay == 1:
        which = jax.vmap(lambda k: jax.random.permutation(k, rows))(jax.random.split(key, config.passes)).ravel()
    else:
        which = jax.random.randint(key, (config.passes * rows,), 0, filled)
    minibatches = len(which) // config.batch_size
    return which[: minibatches * config.batch_size].reshape(minibatches, config.batch_size)


def build(config: Any, env: pgx.Env, game: games.Game) -> tuple[Callable, Loop, Callable]:
    """The network, the loop before its first iteration, and `iterate(loop) -> (loop, numbers)`."""
    k_network, k_begin, k_loop = jax.random.split(jax.random.key(config.seed), 3)
    net, params = network(config.network, game, k_network)
    search, rows = searcher(env, net, config.simulations), config.games * config.plies
    optimiser = optax.adamw(config.learning_rate, weight_decay=config.weight_decay)

    def play(params: Any, state: Any, key: Any) -> tuple[Any, Rows, Any]:
        step = lambda state, key: move(env, search, params, state, key)
        state, played = jax.lax.scan(step, state, jax.random.split(key, config.plies))
        fresh = Rows(played.observation, played.policy, *outcomes(played.reward, played.ended))
        return state, jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), fresh), played.ended.sum()

    def minibatch(learner: tuple[Any, Any], rows: Rows) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        params, opt_state = learner
        gradient, losses = jax.grad(functools.partial(loss, net), has_aux=True)(params, rows)
        updates, opt_state = optimiser.update(gradient, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), losses

    def iterate(loop: Loop) -> tuple[Loop, dict[str, Any]]:
        key, k_play, k_order = jax.random.split(loop.key, 3)
        state, fresh, ended = play(loop.params, loop.state, k_play)
        place = loop.iteration % config.replay * rows
        write = lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, 0)
        kept = jax.tree.map(write, loop.kept, fresh)
        which = order(config, k_order, rows, jnp.minimum(loop.iteration + 1, config.replay) * rows)
        learn = lambda learner, i: minibatch(learner, jax.tree.map(lambda x: x[i], kept))
        (params, opt_state), (policy, error) = jax.lax.scan(learn, (loop.params, loop.opt_state), which)
        numbers = {"policy": policy.mean(), "value": error.mean(), "games": ended, "known": fresh.known.mean()}
        return Loop(state, params, opt_state, kept, loop.iteration + 1, key), numbers

    state = begin(env, k_begin, config.games)
    _, shapes, _ = jax.eval_shape(play, params, state, k_loop)
    kept = jax.tree.map(lambda x: jnp.zeros((config.replay * rows, *x.shape[1:]), x.dtype), shapes)
    return net, Loop(state, params, optimiser.init(params), kept, jnp.int32(0), k_loop), iterate
