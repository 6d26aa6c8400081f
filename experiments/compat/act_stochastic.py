"""A program for mctx: Stochastic MuZero acts in a race where a die of three sides decides how far each step goes."""

import jax
import jax.numpy as jnp
import numpy as np

BATCH, ACTIONS, SIDES, TURNS, SIMULATIONS = 8, 2, 3, 4, 20
GAIN = jnp.array([[1.0, 1.0, 1.0], [0.0, 0.0, 4.0]])  # play safe, or hope for the highest side


def functions(mctx):
    """The dynamics after an action, and after the die; the state is the distance covered."""

    def decide(params, key, action, place):
        fair = jnp.zeros((BATCH, SIDES))
        value = place + GAIN[action % ACTIONS].mean(-1)
        return mctx.DecisionRecurrentFnOutput(chance_logits=fair, afterstate_value=value), (place, action % ACTIONS)

    def happen(params, key, side, afterstate):
        place, action = afterstate
        gain = GAIN[action, side % SIDES]
        return mctx.ChanceRecurrentFnOutput(
            action_logits=jnp.stack([place, -place], -1) / 9,
            value=place + gain,
            reward=gain,
            discount=jnp.full(BATCH, 0.9),
        ), place + gain

    return decide, happen


def main(mctx):
    """Actions and their weights, turn by turn."""
    decide, happen = functions(mctx)

    @jax.jit
    def act(key, place):
        root = mctx.RootFnOutput(prior_logits=jnp.zeros((BATCH, ACTIONS)), value=place, embedding=place)
        out = mctx.stochastic_muzero_policy((), key, root, decide, happen, SIMULATIONS, temperature=0.5)
        return out.action, out.action_weights

    place, actions, weights = jnp.arange(BATCH) / 3, [], []
    for turn in range(TURNS):
        action, weight = act(jax.random.key(turn), place)
        side = jax.random.randint(jax.random.key(100 + turn), (BATCH,), 0, SIDES)
        place = place + GAIN[action, side]
        actions.append(np.asarray(action))
        weights.append(np.asarray(weight))
    return {"actions": np.stack(actions), "weights": np.stack(weights), "place": np.asarray(place)}
