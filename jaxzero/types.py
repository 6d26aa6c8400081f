"""The records that all parts share: Model, Step, Rule, EdgeView, Path, PolicyOutput.

Shape letters, used in every annotation of the library:

    B  games searched in lock-step        N  node slots of a tree
    A  actions of the game                W  edge slots of a node
    P  players                            D  the longest path

and inside the search: G games of a tile, C slots looked through, K children kept in a node's own row.
"""

import dataclasses
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Params = Any
State = Any
Keys = Any  # one PRNG key per game, [B]

FEW = 8  # arrays of at most this many numbers are shown, larger ones by type and shape


def in_short(record: Any) -> str:
    """A record in a line or two, for a notebook's cell: the `__repr__` of records of arrays or functions.

    >>> import jax.numpy as jnp
    >>> Step(jnp.zeros((2, 7)), value=jnp.array([0.25, -1]), reward=jnp.zeros(2), discount=jnp.ones(2))
    Step(prior_logits=float32[2, 7], value=[0.25, -1], reward=[0, 0], discount=[1, 1])
    """
    fields = record._fields if hasattr(record, "_fields") else [x.name for x in dataclasses.fields(record)]
    defaults = getattr(record, "_field_defaults", {})
    told = {name: getattr(record, name) for name in fields}
    shown = [f"{name}={field_in_short(x)}" for name, x in told.items() if x is not None or name not in defaults]
    return f"{type(record).__name__}({', '.join(shown)})"


def field_in_short(x: Any) -> str:
    """A field's content in a few words: the numbers of a small array, type and shape of a larger one, or a name."""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return _few(x) or f"{x.dtype}[{', '.join(map(str, x.shape))}]"
    if callable(x) and not hasattr(x, "_fields"):
        return getattr(x, "__name__", type(x).__name__)
    if hasattr(x, "_fields") or dataclasses.is_dataclass(x):
        return f"{type(x).__name__}(...)"
    leaves = jax.tree.leaves(x) if isinstance(x, dict | list | tuple) else []
    if any(hasattr(leaf, "shape") for leaf in leaves):
        return f"{type(x).__name__} of {len(leaves)} arrays"
    return reprlib.repr(x)


def _few(x: Any) -> str:
    """The numbers of a small array; empty if they are many, or not available: while tracing, or on other hosts."""
    known = isinstance(x, np.ndarray) or (
        isinstance(x, jax.Array)
        and not isinstance(x, jax.core.Tracer)
        and x.is_fully_addressable
        and not x.is_deleted()
        and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    )
    if not known or x.ndim > 1 or x.size > FEW:
        return ""
    numbers = [f"{one:.4g}" if isinstance(one, float) else str(one) for one in np.atleast_1d(x).tolist()]
    return f"[{', '.join(numbers)}]" if x.ndim else numbers[0]


class Step(NamedTuple):
    """A model's answer for a batch of positions.

    Attributes:
        prior_logits: unnormalised log-probabilities of the actions; where chance moves, of its outcomes.
        value: expected return from here on, for the player to move: `[B]`; or one entry per player,
            absolute (entry p belongs to player p), when there are more than two: `[B, P]`.
        reward: what the step that led here paid to the player who took it: `[B]`, or to every player: `[B, P]`.
            Ignored for a root. Instead of `[B]`, one number for all games is enough.
        discount: factor on everything after that step. With `to_play` it is γ >= 0, 0 when the episode
            ended, and the search derives the sign: a return is negated where the move passes to the
            other player. Without `to_play` it is taken as it is, sign included (−1 for strict alternation).
            Ignored for a root. One number for all games is enough.
        legal: True where an action may be taken; None: every action, always.
        terminal: True where the episode is over: nothing below is ever expanded; None: never.
        truncated: True where it is over by a limit, not by the rules, so that it proves nothing; None: never.
        to_play: the player to move, 0 ... P−1; None: see `discount`.
        chance: True where chance moves next, not a player: see `jaxzero.search.chance_nodes`; None: never. Even then,
            `value` is for the player that `to_play` names.
    """

    prior_logits: Float[Array, "B A"]
    value: Float[Array, "B"] | Float[Array, "B P"]
    reward: Float[Array, "B"] | Float[Array, "B P"]
    discount: Float[Array, "B"]
    legal: Bool[Array, "B A"] | None = None
    terminal: Bool[Array, "B"] | None = None
    to_play: Int[Array, "B"] | None = None
    truncated: Bool[Array, "B"] | None = None
    chance: Bool[Array, "B"] | None = None

    __repr__ = in_short


class Model(NamedTuple):
    """Two pure functions, batched over games: the evaluation of a root, and that of what follows an action.

    Attributes:
        root: `(params, keys, state) -> (Step, embedding)`; the embedding is what the tree stores.
        step: `(params, keys, action, embedding) -> (Step, embedding)`.
        move: the first half of `step`, for a model that can be divided: `(params, keys, action, embedding) -> (Step,
            position, embedding)`, the action's result without evaluation: logits and value are 0. None: it cannot be
            divided.
        evaluate: the second half: `(params, keys, position) -> (prior_logits, value)`, with the same keys.
    """

    root: Callable[[Params, Keys, State], tuple[Step, State]]
    step: Callable[[Params, Keys, Int[Array, "B"], State], tuple[Step, State]]
    move: Callable[[Params, Keys, Int[Array, "B"], State], tuple[Step, State, State]] | None = None
    evaluate: Callable[[Params, Keys, State], tuple[Array, Array]] | None = None

    __repr__ = in_short


class EdgeView(NamedTuple):
    """What a rule sees of one node, for any leading shape `...`: one entry per edge.

    A view holds all W edges of a node; or, for a rule that promises `by_prior`, the visited ones, the next
    one to be tried, and padding that looks like illegal, unvisited edges.

    Attributes:
        game: the game each node belongs to: `x[view.game]` is a node's own entry of `x [B]`.
        action: the edge's action slot; W in padding.
        prior: what `Rule.prepare` made of the logits; −inf where the edge is illegal.
        visits: simulations that went through the edge.
        value: mean return of the edge, reward included, for the player to move at the node; 0 if unvisited.
        reward: reward of the edge; 0 if unvisited.
        discount: signed discount of the edge; 0 if unvisited.
        child_value: mean value of the node below, as that node stores it; 0 if unvisited.
        node_visits: visits of the node, its own evaluation included.
        node_value: mean value of the node, for the player to move there.
        raw_value: the network's value of the node, for the player to move there.
        unvisited_mass: sum of `Rule.mass` over the legal, unvisited edges, shown or not; 0 for a rule without.
        root: the per-game record `tree.root`, for the root's own rule.
        lower: the proven lower bound of the mover's return; the least possible return if nothing is known. None: the
            search does not prove, see `Rule.returns`.
        upper: the proven upper bound, likewise.
        in_flight: walks through the edge that wait for their evaluation, while lanes walk; else None. Visits and
            values do not count them. See `parallel`.
        chance: whether chance moves at the node: then the search does not ask the rule; None: it never does.
    """

    game: Int[Array, "..."]
    action: Int[Array, "... W"]
    prior: Float[Array, "... W"]
    visits: Int[Array, "... W"]
    value: Float[Array, "... W"]
    reward: Float[Array, "... W"]
    discount: Float[Array, "... W"]
    child_value: Float[Array, "... W"]
    node_visits: Int[Array, "..."]
    node_value: Float[Array, "..."]
    raw_value: Float[Array, "..."]
    unvisited_mass: Float[Array, "..."]
    root: Any = None
    lower: Float[Array, "... W"] | None = None
    upper: Float[Array, "... W"] | None = None
    in_flight: Int[Array, "... W"] | None = None
    chance: Bool[Array, "..."] | None = None

    __repr__ = in_short


class Rule(NamedTuple):
    """How a node chooses among its edges: two pure functions and a promise.

    Attributes:
        prepare: `logits -> prior`, once per node. The logits are shifted so that their maximum is 0; they are
            −inf where illegal, and so must the prior be.
        score: `EdgeView -> scores [..., W]`; the search follows the highest, the lowest action index on a tie (among
            unvisited edges of a `by_prior` rule: the higher prior), never an illegal edge. It may read its own
            node's row and per-game data, `x[view.game]`; the root's rule also `view.root`.
        by_prior: True promises that of the unvisited edges the one with the highest prior (at the root: the
            prior in force there, `tree.root.prior` if set) scores highest, and that the scores depend on the other
            unvisited edges only through `unvisited_mass`. (So a rule that does not read `tree.root.prior` must not find
            one there.) The search then scores only the visited edges and that one: the same choice, at a cost that does
            not grow with A. False is always safe.
        mass: `prior -> weights`, of which the scores need the sum over the unvisited edges; None: they do not.
        returns: the least and the greatest return of the game, where values are proven: see `jaxzero.options.solver`.
        on_plant: `(tree, step) -> tree`, what the rule wants a new tree to keep; None: nothing.
    """

    prepare: Callable[[Float[Array, "... W"]], Float[Array, "... W"]]
    score: Callable[[EdgeView], Float[Array, "... W"]]
    by_prior: bool = False
    mass: Callable[[Float[Array, "... W"]], Float[Array, "... W"]] | None = None
    returns: tuple[float, float] | None = None
    on_plant: Callable[[Any, Step], Any] | None = None

    __repr__ = in_short


class Path(NamedTuple):
    """One walk per game, from the root down.

    Attributes:
        nodes: the nodes passed, the root first; entries at and beyond `length` are room, meaningless.
        length: how many nodes were passed, at least 1.
        going: the games that take part; the others stay as they are. None: all.
    """

    nodes: Int[Array, "B D"]
    length: Int[Array, "B"]
    going: Bool[Array, "B"] | None = None


@chex.dataclass(frozen=True)
class PolicyOutput:
    """A policy's answer for a batch of positions.

    Finished games get an answer, too, so that others of the batch can go on: action 0, equal weights over all actions,
    the value 0. Mask them out: neither the action nor the weights mean anything there.

    Attributes:
        action: the action to take.
        action_weights: the improved policy: a training target, non-negative, summing to 1.
        value: the root's value after the search, for the player to move (`[B, P]` with several players): the mean of
            all simulations, exploring ones included. For values of actions, see `info.summary.qvalues`.
        tree: the search tree; pass it back to continue the search, if the builder's `capacity` left room.
        info: diagnostics; `info.status` is a bit mask per game, see `jaxzero.search.tree.Status`.
    """

    action: Int[Array, "B"]
    action_weights: Float[Array, "B A"]
    value: Float[Array, "B"] | Float[Array, "B P"]
    tree: Any
    info: Any

    __repr__ = in_short
