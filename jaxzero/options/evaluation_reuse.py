"""Evaluation cache: statistics start anew after a move, but known positions are not evaluated again.

After a move the positions below it were evaluated already. Here the next search grows a new tree from nothing, but
takes the model's answer for a position from the previous search's tree, if it is there. The visits are exactly those of
a search without reuse. So targets made from visits keep their meaning, and Gumbel's halving runs its course. It is the
second of the two ways to reuse, see `jaxzero.options.subtree_reuse`.

It pays where the network dominates the cost. All games of a batch move in lock-step, and the network is called if only
one game needs it: with one game, every known position saves a call; with many, hardly a call is saved. Each node stores
its logits, which take as much memory as its prior.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.search.checks.argument_checks import check_function, check_tree
from jaxzero.search.checks.model_checks import masks_at_root_only
from jaxzero.search.checks.start_checks import check_model
from jaxzero.search.edge_view import by_action, edge_view
from jaxzero.search.node_storage import per_game, take, unpack_facts
from jaxzero.search.tree import NONE, Status, Tree
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["num_kept", "with_evaluations_kept"]


class Kept(NamedTuple):
    """The embedding in a tree that keeps evaluations.

    Attributes:
        state: the model's embedding.
        logits: the model's; they cannot be recovered from the rule's prior to the last bit.
        entry: the node of the earlier tree that holds the same position; −1: none.
        asked: whether the model was asked.
    """

    state: State
    logits: Float[Array, "... W"]
    entry: Int[Array, "..."]
    asked: Bool[Array, "..."]


def with_evaluations_kept(build: Callable[[Model], Any], model: Model) -> Any:
    """A policy that starts its statistics anew with every move, and keeps the network's evaluations.

    What it does, when it helps and what it costs: `help(jaxzero.options.evaluation_reuse)`.

    The model must give the same answer for the same position; its keys must not matter.

    Args:
        build: makes the policy, given a model: `lambda model: jz.alphazero(model, 64)`.
        model: what the tree is made of.

    Returns:
        `(params, keys, state, tree=None) -> PolicyOutput`, where `tree` is what `advance` made of an earlier output's
        tree, and `state` the positions that follow.

    Raises:
        ValueError: `build` is no function; when called, with a tree of another kind of policy.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), observation[:, 0, 0, 0] / 2))
    >>> policy = jax.jit(jz.options.with_evaluations_kept(lambda model: jz.gumbel(model, 32), model))
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> state = jax.vmap(game.init)(keys)
    >>> out = policy((), keys, state)
    >>> state = jax.vmap(game.step)(state, out.action, keys)
    >>> again = policy((), keys, state, jz.advance(out.tree, out.action))
    >>> bool((again.info.summary.visits == policy((), keys, state).info.summary.visits).all())
    True
    >>> int(jz.options.num_kept(again.tree)[0]) > 0
    True
    """
    check_function("with_evaluations_kept: build", build, "model", "lambda model: jz.alphazero(model, 64)")

    def policy(params: Params, keys: Keys, state: State = None, tree: Tree | None = None) -> Any:
        check_model(model)
        if tree is not None and not (isinstance(tree, Tree) and isinstance(tree.state, Kept)):
            raise ValueError(
                "tree is of another kind of policy: it holds no logits. Give advance(out.tree, out.action), where out "
                "is what a policy of with_evaluations_kept returned."
            )
        if tree is not None and (tree.root.brought is None or tree.root.prior is not None):  # rounds leave both
            raise ValueError("tree was not advanced: give advance(out.tree, action), and the state after that action.")
        return build(_remembering(model, tree))(params, keys, state)

    return policy


def num_kept(tree: Tree) -> Int[Array, "B"]:
    """How many positions of each tree were not evaluated by the network, thanks to `with_evaluations_kept`.

    It counts among the positions of `num_evaluations`, so not the ends of games.

    Raises:
        ValueError: a tree of another kind of policy.
    """
    check_tree("num_kept: tree", tree)
    if not isinstance(tree.state, Kept):
        raise ValueError(
            "num_kept of a tree of another kind of policy: it does not record what was evaluated. Give the tree of "
            "what a policy of with_evaluations_kept returned."
        )
    over = unpack_facts(tree.facts[:, :-1]).terminal
    return jnp.sum((tree.visits > 0) & ~over & ~tree.state.asked[:, :-1], -1, dtype=jnp.int32)


def _remembering(model: Model, earlier: Tree | None) -> Model:
    """The model, with answers from an earlier tree where it has them."""

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, Kept]:
        def ask() -> tuple[Step, Kept]:
            return _asked(*model.root(params, keys, state))

        if earlier is None:
            return ask()
        there, chance = earlier.size > 0, unpack_facts(earlier.facts[:, 0]).chance
        there = there if chance is None else there & ~chance  # half a ply: `state` alone says what chance did
        said, kept = _answer(earlier, jnp.where(there, jnp.int32(0), NONE), ask)
        if masks_at_root_only(model, params, keys, state):  # in the earlier tree this was no root
            said = said._replace(legal=model.root(params, keys, state)[0].legal)
        return said, kept

    def step(params: Params, keys: Keys, action: Int[Array, "B"], kept: Kept) -> tuple[Step, Kept]:
        def ask() -> tuple[Step, Kept]:
            return _asked(*model.step(params, keys, action, kept.state))

        if earlier is None:
            return ask()
        return _answer(earlier, _below(earlier, kept.entry, action), ask)

    return Model(root, step)


def _below(earlier: Tree, entry: Int[Array, "B*K"], action: Int[Array, "B*K"]) -> Int[Array, "B*K"]:
    """The earlier tree's nodes that actions lead to from `entry`; −1 where there is none."""

    def follow(entry: Array, action: Array) -> Array:
        below = jnp.take_along_axis(by_action(earlier, jnp.maximum(entry, 0)), action[:, None], 1)[:, 0]
        return jnp.where(entry >= 0, below, NONE)

    return _by_lane(earlier, follow, entry, action)


def _by_lane(earlier: Tree, function: Callable[..., Any], *arrays: Int[Array, "B*K"]) -> Any:
    """Applies a function of one entry per game to K entries per game, in the order of lanes: game by game."""
    batch, rows = earlier.size.shape[0], len(arrays[0])
    if rows == batch:
        return function(*arrays)
    lanes = [x.reshape(batch, rows // batch) for x in arrays]
    return jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), jax.vmap(function, 1, 1)(*lanes))


def _unknown(bounds: Float[Array, "B 2"]) -> Bool[Array, "B"]:
    return bounds[:, 0] < bounds[:, 1]


def _asked(step: Step, state: State) -> tuple[Step, Kept]:
    none = jnp.full(step.prior_logits.shape[0], NONE, jnp.int32)
    return step, Kept(state, step.prior_logits, none, jnp.ones_like(none, bool))


def _answer(earlier: Tree, entry: Int[Array, "B"], ask: Callable[[], tuple[Step, Kept]]) -> tuple[Step, Kept]:
    """The earlier tree's answer at `entry`. Where that is −1 the model is asked, in one call for the whole batch."""
    unsure = earlier.status & Status.NON_FINITE.value != 0  # a remembered 0 may stand for a non-finite number
    entry = jnp.where(jnp.repeat(unsure, len(entry) // len(unsure)), NONE, entry)
    known = entry >= 0
    like = jax.eval_shape(ask)
    remembered = _by_lane(earlier, lambda entry: _remembered(earlier, entry, like), jnp.maximum(entry, 0))

    def some_ask() -> tuple[Step, Kept]:
        return jax.tree.map(lambda old, new: jnp.where(per_game(known, new), old, new), remembered, ask())

    return jax.lax.cond(jnp.all(known), lambda: remembered, some_ask)


def _remembered(earlier: Tree, entry: Int[Array, "B"], like: tuple[Step, Kept]) -> tuple[Step, Kept]:
    """The model's stored answers for the nodes `entry`, in the model's own shapes and types."""
    facts, kept = unpack_facts(take(earlier.facts, entry)), jax.tree.map(lambda x: take(x, entry), earlier.state)
    single = earlier.num_players == 1
    step = Step(
        prior_logits=kept.logits,
        value=facts.raw_value[:, 0] if single else facts.raw_value,
        reward=facts.reward[:, 0] if single else facts.reward,
        discount=facts.discount if like[0].to_play is None else jnp.abs(facts.discount),
        legal=~jnp.isneginf(edge_view(earlier, entry).prior),
        terminal=facts.terminal,
        to_play=facts.to_play,
        chance=facts.chance,
        truncated=facts.terminal if earlier.bounds is None else facts.terminal & _unknown(take(earlier.bounds, entry)),
    )
    kept = kept._replace(entry=entry, asked=jnp.zeros_like(kept.asked))
    said = Step(*(None if a is None else jnp.asarray(x, a.dtype) for x, a in zip(step, like[0], strict=True)))
    return said, kept
