"""A program for mctx: an agent with a model acts on CartPole, calling the policy without `jit` in every step."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, SIMULATIONS, WIDTH = 6, 12, 16


def cart_pole(state, action):
    """One step of 0.02 s (Barto, Sutton and Anderson 1983): masses 1 and 0.1, half length 0.5, force 10."""
    x, speed, angle, turn = state
    force = 10.0 if action == 1 else -10.0
    push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
    turning = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    pushing = push - 0.05 * turning * np.cos(angle) / 1.1
    return state + 0.02 * np.array([speed, pushing, turn, turning])


class Agent:
    """Networks of one layer, with weights of its own."""

    def __init__(self, mctx, key):
        shapes = {"see": (4, WIDTH), "move": (WIDTH + 2, WIDTH), "say": (WIDTH, 4)}  # say: two logits, value, reward
        keys = jax.random.split(key, len(shapes))
        self.mctx = mctx
        self.params = {name: jax.random.normal(k, shape) / 2 for k, (name, shape) in zip(keys, shapes.items())}

    def recurrent_fn(self, params, key, action, hidden):
        hidden = jnp.tanh(jnp.concatenate([hidden, jax.nn.one_hot(action, 2)], -1) @ params["move"])
        said = hidden @ params["say"]
        return self.mctx.RecurrentFnOutput(
            reward=said[:, 3], discount=jnp.full_like(said[:, 3], 0.99), prior_logits=said[:, :2], value=said[:, 2]
        ), hidden

    def act(self, observation, key, temperature):
        hidden = jnp.tanh(jnp.asarray(observation, jnp.float32)[None] @ self.params["see"])
        said = hidden @ self.params["say"]
        root = self.mctx.RootFnOutput(prior_logits=said[:, :2], value=said[:, 2], embedding=hidden)
        return self.mctx.muzero_policy(
            self.params, key, root, self.recurrent_fn, SIMULATIONS, temperature=temperature, dirichlet_alpha=0.5
        )


def main(mctx):
    """Actions and their weights; the agent changes after every step, as one that learns does."""
    agent, state, actions, weights = Agent(mctx, jax.random.key(0)), np.array([0.0, 0.0, 0.02, 0.0]), [], []
    for step in range(STEPS):
        out = agent.act(state, jax.random.key(step), temperature=1.0 / (step + 1))
        actions.append(int(out.action[0]))
        weights.append(np.asarray(out.action_weights[0]))
        state = cart_pole(state, actions[-1])
        agent.params = jax.tree.map(lambda x: 0.95 * x, agent.params)
    return {"actions": np.array(actions), "weights": np.stack(weights), "state": state}
