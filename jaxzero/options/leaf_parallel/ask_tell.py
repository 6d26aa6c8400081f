"""Ask and tell: leaves for an evaluator outside JAX.

A search is split at the evaluation: `ask` walks K lanes and returns the positions to be evaluated, `tell` takes the
answers and goes on. The evaluator in between may be anything: another framework, a server that batches the questions of
many searches, an engine, a person.

    step, embedding = model.root(params, keys[0], states)                                   # keys [101, B]
    tree, path = jaxzero.search.enter(jaxzero.search.plant(step, embedding, rule, capacity=801), rule)
    for i in range(100):
        question = ask(params, keys[i + 1], tree, path, model, rule, rule, lanes=8)        # jitted
        seen = jax.vmap(game.observe)(question.position)                                   # of models.perfect: states
        logits, value = evaluator(seen)                                                    # [B*8, A], [B*8]
        tree, path = tell(question, logits, value, rule)                                   # jitted

It equals `parallel`, bit for bit, with evaluations from elsewhere. The model needs only its rules, `Model.move`, as
models of `models.perfect` have it. The trees that wait for an answer are in the question; the trees given to `ask` stay
valid, and may be asked again. Jitted: `jax.jit(jaxzero.options.ask, static_argnames=("model", "rule", "root_rule",
"lanes"))`, likewise `tell`. Where memory is short, donate both: the trees to `ask`, and the question to `tell`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxzero.options.leaf_parallel.leaf_batch import Leaves, apply, collect, lane_keys, parents_of
from jaxzero.options.leaf_parallel.virtual_loss import Virtual, check_virtual, virtual_mean
from jaxzero.search.checks.argument_checks import counts
from jaxzero.search.checks.model_checks import evaluated
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["Question", "ask", "tell"]


class Question(NamedTuple):
    """Positions to be evaluated, game by game, K for each.

    Attributes:
        position: the argument of `Model.evaluate`.
        needed: where the answer matters. Elsewhere (the end of a game, a position that another lane asks for) it may
            be anything.
        step: the Step by the rules alone.
        embedding: what the tree will store.
        leaves: the places in the trees that the answers belong to.
        waiting: the trees, half-way through a step: for `tell` only.
    """

    position: State
    needed: Bool[Array, "B*K"]
    step: Step
    embedding: State
    leaves: Leaves
    waiting: Tree


def ask(
    params: Params,
    keys: Keys,
    tree: Tree,
    path: Path,
    model: Model,
    rule: Rule,
    root_rule: Rule,
    *,
    lanes: int = 1,
    virtual: Virtual | None = None,
    max_depth: int | None = None,
) -> Question:
    """Walks K times in every game, and returns the positions to be evaluated.

    Args:
        params: handed to the model.
        keys: one per game, for the model's moves.
        tree: the trees, as `enter` or `tell` left them.
        path: likewise; its memory is reused.
        model: one that can be divided, as `models.perfect` and `models.rollout` make.
        rule: how interior nodes choose.
        root_rule: how the root chooses.
        lanes: K.
        virtual: what walks in flight change; default `virtual_mean()`.
        max_depth: how many edges below the root a walk may go.

    Raises:
        ValueError: a model that cannot be divided; lanes below 1.
    """
    (lanes,) = counts(lanes=lanes)
    if model.move is None:
        raise ValueError(
            "ask needs a model that separates evaluation from rules, but Model.move is None. Use models.perfect(game, "
            "network), or give Model.move."
        )
    virtual = virtual_mean() if virtual is None else virtual
    check_virtual("virtual", virtual)
    tree, leaves = collect(tree, path, rule, root_rule, lanes, virtual, max_depth)
    action, above = parents_of(tree, leaves)
    step, position, embedding = model.move(params, lane_keys(keys, lanes), action, above)
    new = leaves.node.T.reshape(-1) < tree.capacity
    needed = new if step.terminal is None else new & ~step.terminal
    return Question(position, needed, step, embedding, leaves, tree)


def tell(
    question: Question,
    prior_logits: Float[Array, "B*K A"],
    value: Float[Array, "B*K"] | Float[Array, "B*K P"],
    rule: Rule,
    *,
    max_depth: int | None = None,
) -> tuple[Tree, Path]:
    """Stores the answers, and backs their values up; K simulations are done then.

    Args:
        question: of `ask`.
        prior_logits: of each position.
        value: of each position, for the player to move there, or for every player.
        rule: how interior nodes choose.
        max_depth: as in `ask`.

    Raises:
        ValueError: answers of other shapes.
    """
    step = evaluated(question.step, jnp.asarray(prior_logits), jnp.asarray(value))
    return apply(question.waiting, question.leaves, step, question.embedding, rule, max_depth)
