"""The compiled functions of an engine; several engines can share them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxzero.games.game import Game
from jaxzero.options.early_stopping import total_visits
from jaxzero.options.subtree_reuse import advance
from jaxzero.play.analysis import known
from jaxzero.search.tree import Tree
from jaxzero.types import PolicyOutput, State

__all__ = ["FOREVER", "Programs", "playable", "programs"]

FOREVER = 2**22  # simulations in one call; `stop` ends it


class Programs(NamedTuple):
    """The compiled functions of an engine. They hold nothing of a game in progress, so several engines may share them.

    Attributes:
        game: its rules; functions of one position, like `observe` and `legal`, are compiled.
        init: `keys -> states`, of a batch.
        step: `(states, actions, keys) -> states`, of a batch.
        one: the first position of a batch.
        empty: `(params, keys, state) -> tree`, an empty tree, the same one every time.
        more: `(params, keys, state, tree, most, least) -> PolicyOutput`: searches until the root has `most` visits, of
            which each legal move gets `least` first, if `programs` was given `spread`.
        advance: `jaxzero.advance`.
        forgotten: `tree -> tree` that keeps nothing.
        known: `tree -> Known`, the arrays of a report.
        playable: `(state, line) -> how many moves of it are legal, one after another`, for learned models, which do not
            know the rules below the root. None: lines are as the search has them.
    """

    game: Game
    init: Callable
    step: Callable
    one: Callable
    empty: Callable
    more: Callable
    advance: Callable
    forgotten: Callable
    known: Callable
    playable: Callable | None = None


def programs(
    game: Game, build: Callable[[int, Any], Callable], spread: Callable[[int, Any, Any], Callable] | None = None
) -> Programs:
    """The programs of an engine for this game and search; each is compiled when it is first called.

    Args:
        game: its rules.
        build: `(num_simulations, stop) -> policy`.
        spread: `(num_simulations, stop, least) -> policy`, that policy with `jaxzero.root.minimum_visits(rule, least)`
            as the root's rule; None: no search can be spread over all legal moves.
    """
    forget = jax.jit(_forgotten)
    searching = spread or (lambda n, stop, least: build(n, stop))

    def more(params, keys, state, tree, most, least) -> PolicyOutput:
        return searching(FOREVER, total_visits(most), least)(params, keys, state, tree)

    made = []

    def empty(params, keys, state) -> Tree:
        # Compiling a whole search for this would take as long as compiling the wanted one. Its shapes are enough, and
        # the bounds of all returns, which no search changes: XLA removes the rest of the search.
        if made:
            return made[0]
        shapes = []

        def returns(*given):
            tree = build(1, None)(*given).tree
            shapes.append(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree))
            return tree.root.returns

        bounds = jax.jit(returns)(params, keys, state)
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes[0])
        made.append(forget(blank.replace(root=blank.root.replace(returns=bounds))))
        return made[0]

    asked = ("observe", "legal", "to_play", "terminal", "rewards")
    return Programs(
        game=game._replace(**{name: jax.jit(getattr(game, name)) for name in asked}),
        init=jax.jit(jax.vmap(game.init)),
        step=jax.jit(jax.vmap(game.step)),
        one=jax.jit(lambda state: jax.tree.map(lambda x: x[0], state)),
        empty=empty,
        more=jax.jit(more),
        advance=jax.jit(advance),
        forgotten=forget,
        known=jax.jit(known),
    )


def playable(game: Game) -> Callable[[State, Int[Array, "L"]], Int[Array, ""]]:
    """How many actions of a line can be played from a position (no batch axis), one after another; −1 is no action.

    With chance this follows one random roll, so only the first move is certain in such games.
    """

    def step(carry: tuple, action: Int[Array, ""]) -> tuple:
        state, going = carry
        going = going & (action >= 0) & game.legal(state)[action]
        return (game.step(state, jnp.maximum(action, 0), jax.random.key(0)), going), going

    return jax.jit(lambda state, line: jnp.sum(jax.lax.scan(step, (state, jnp.bool_(True)), line)[1]))


def _forgotten(tree: Tree) -> Tree:
    """A tree of the same shapes that keeps nothing."""
    return advance(tree, jnp.full(1, -1, jnp.int32), jnp.ones(1, jnp.bool_))
