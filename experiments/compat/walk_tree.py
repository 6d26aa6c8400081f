"""A program for mctx: walks a tree number by number in Python, and draws it in the DOT language."""

import jax
import jax.numpy as jnp
import numpy as np

BATCH, ACTIONS, SIMULATIONS = 2, 3, 24


def recurrent(mctx):
    def recurrent_fn(params, key, action, embedding):
        after = jnp.sin(embedding + action[:, None] + jnp.arange(ACTIONS + 2))
        return mctx.RecurrentFnOutput(
            reward=after[:, -1], discount=jnp.full(BATCH, 0.9), prior_logits=after[:, :ACTIONS], value=after[:, -2]
        ), after

    return recurrent_fn


def drawn(tree, game=0):
    """The tree of a game: a box per node, an arrow per action that was tried."""
    priors = jax.nn.softmax(tree.children_prior_logits, -1)
    lines = ["digraph {"]
    for node in range(tree.num_simulations + 1):
        label = f"{float(tree.node_values[game, node]):.2f} of {int(tree.node_visits[game, node])}"
        lines.append(f'  {node} [label="{label}"];')
        for action in range(tree.num_actions):
            child = int(tree.children_index[game, node, action])
            if child >= 0:
                pays, prior = float(tree.children_rewards[game, node, action]), float(priors[game, node, action])
                lines.append(f'  {node} -> {child} [label="{action}: pays {pays:.2f}, prior {prior:.2f}"];')
    return "\n".join([*lines, "}"])


def main(mctx):
    """The drawing, and the numbers of the tree."""
    first = jnp.cos(jnp.arange(BATCH * (ACTIONS + 2.0)).reshape(BATCH, -1))
    root = mctx.RootFnOutput(prior_logits=first[:, :ACTIONS], value=first[:, -2], embedding=first)
    out = jax.jit(lambda: mctx.gumbel_muzero_policy((), jax.random.key(3), root, recurrent(mctx), SIMULATIONS))()
    assert isinstance(out.search_tree, mctx.Tree)
    text = drawn(out.search_tree)
    return {"arrows": np.array(text.count("->")), "visits": np.asarray(out.search_tree.children_visits)}
