"""A program for mctx: AlphaZero on a game of pgx. Self-play with Gumbel search, a loss, a few steps of Adam."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pgx

GAMES, PLIES, SIMULATIONS, ITERATIONS, WIDTH = 16, 12, 16, 3, 32
ENV = pgx.make("tic_tac_toe")


def init(key):
    sizes = (int(np.prod(ENV.observation_shape)), WIDTH, ENV.num_actions + 1)
    keys = jax.random.split(key, 2)
    return [jax.random.normal(k, (m, n)) / m**0.5 for k, m, n in zip(keys, sizes, sizes[1:])]


def network(params, observation):
    x = observation.reshape(len(observation), -1).astype(jnp.float32)
    out = jax.nn.relu(x @ params[0]) @ params[1]
    return out[:, :-1], jnp.tanh(out[:, -1])


def evaluate(params, states):
    logits, value = network(params, states.observation)
    logits = jnp.where(states.legal_action_mask, logits - logits.max(-1, keepdims=True), jnp.finfo(logits.dtype).min)
    return logits, value


def policy(mctx, params, key, states):
    def recurrent_fn(params, key, action, states):
        mover = states.current_player
        states = jax.vmap(ENV.step)(states, action)
        logits, value = evaluate(params, states)
        over = states.terminated
        return mctx.RecurrentFnOutput(
            reward=states.rewards[jnp.arange(GAMES), mover],
            discount=jnp.where(over, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(over, 0.0, value),
        ), states

    logits, value = evaluate(params, states)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)
    return mctx.gumbel_muzero_policy(
        params, key, root, recurrent_fn, SIMULATIONS, invalid_actions=~states.legal_action_mask
    )


def self_play(mctx, params, key):
    """Observations, improved policies and returns; a finished game begins anew."""

    def ply(states, key):
        search_key, reset_key = jax.random.split(key)
        out = policy(mctx, params, search_key, states)
        after = jax.vmap(ENV.step)(states, out.action)
        reward = after.rewards[jnp.arange(GAMES), states.current_player]
        fresh = jax.vmap(ENV.init)(jax.random.split(reset_key, GAMES))
        pick = lambda x, y: jnp.where(after.terminated.reshape(-1, *(1,) * (x.ndim - 1)), x, y)
        return jax.tree.map(pick, fresh, after), (
            states.observation,
            out.action_weights,
            reward,
            after.terminated,
            out.action,
        )

    first = jax.vmap(ENV.init)(jax.random.split(key, GAMES))
    _, (observations, weights, rewards, over, actions) = jax.lax.scan(ply, first, jax.random.split(key, PLIES))

    def back(value, step):
        reward, over = step
        value = reward - jnp.where(over, 0.0, value)
        return value, value

    _, returns = jax.lax.scan(back, jnp.zeros(GAMES), (rewards, over), reverse=True)
    return (observations, weights, returns), actions


def loss(params, batch):
    observations, weights, returns = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
    logits, value = network(params, observations)
    return optax.softmax_cross_entropy(logits, weights).mean() + jnp.square(value - returns).mean()


def main(mctx):
    """The games played, and the learned parameters."""
    params, adam = init(jax.random.key(0)), optax.adam(1e-2)

    @jax.jit
    def iteration(params, state, key):
        batch, actions = self_play(mctx, params, key)
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, state = adam.update(grads, state)
        return optax.apply_updates(params, updates), state, value, actions

    state, losses, played = adam.init(params), [], []
    for i in range(ITERATIONS):
        params, state, value, actions = iteration(params, state, jax.random.key(i))
        losses.append(value)
        played.append(actions)
    return {"actions": np.stack(played), "loss": np.stack(losses)}
