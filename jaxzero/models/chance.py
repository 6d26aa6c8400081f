"""Models of games of chance: each action leads to a chance node with several outcomes.

Without this, an edge of `models.perfect` keeps the one outcome that was drawn when it was expanded. That searches one
possible future, which is good enough where chance matters little. Here an action leads to a chance node
(`jaxzero.search.chance_nodes`) with an edge for each of C outcomes, so that the value of an action is the mean over
what may follow:

    outcomes = chance.sampled(game, 16)                     # any game whose step takes a key
    model    = chance.with_outcomes(models.perfect(game, net), game, outcomes)
    policy   = jaxzero.gumbel(model, num_simulations=128)          # or any other

With `sampled`, the C outcomes of each chance node are draws, each worth 1/C: a sample average, whose error of O(1/√C)
no number of simulations removes. Where all outcomes can be listed, do so, with `by_keys` (the dice of backgammon) or
`Outcomes` of your own: then the search has the probabilities themselves, and its error goes like 1/N.

To keep the tree from move to move, give the action played and, where chance had a part, the slot of its outcome:
`tree = jaxzero.advance(tree, jaxzero.options.action_and_outcome(tree, action, outcome))`. (`sampled` does not tell its
slots: begin with a new tree.)

The cost: a chance node and one node for each outcome seen, so a given number of simulations looks less far ahead; with
large C and few simulations hardly further than one step. Each simulation makes one step of the game and one evaluation,
as usual.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.games.outcomes import Outcomes, by_keys, sampled
from jaxzero.types import Keys, Model, Params, PolicyOutput, State, Step

__all__ = [
    "Outcomes",
    "by_keys",
    "for_actions",
    "sampled",
    "select_rows",
    "widened",
    "with_listed_outcomes",
    "with_outcomes",
]


class Moment(NamedTuple):
    """The embedding in the tree: a position; or, at a chance node, the position before it and the action taken there.

    Attributes:
        state: the packed position.
        action: the action taken there; 0 at a decision.
        key: of the chance node, as data.
        chance: whether it is a chance node.
    """

    state: State
    action: Int[Array, "B"]
    key: Array
    chance: Bool[Array, "B"]


def with_outcomes(
    model: Model,
    game: Game,
    outcomes: Outcomes,
    discount: float | Float[Array, ""] = 1.0,
    afterstate: Callable[[Params, State, Int[Array, "B"]], Float[Array, "B ..."]] | None = None,
    outcome_values: Callable[[Params, State, Int[Array, "B"]], Float[Array, "B C ..."]] | None = None,
) -> Model:
    """A model whose actions lead to chance nodes, and whose outcomes lead on.

    The value of a chance node is for the player who acted. Its first value is that of one outcome, drawn by the
    probabilities, reward included: an unbiased estimate that counts as one visit. With `afterstate`, that is its first
    value instead. Rewards and γ are on the edges of outcomes; the edge into a chance node has reward 0 and discount 1.

    Args:
        model: says what positions are worth, `model.root` of the game's unpacked states: `models.perfect`,
            `models.rollout`. (A rollout draws its own chances.)
        game: the rules.
        outcomes: `sampled(game, C)`, `by_keys`, or others.
        discount: γ of a step of the game; that of `model` is ignored.
        afterstate: `(params, states, actions) -> values` for the player who acts, reward included, batched: the value
            of an action before chance has its part. None: not known.
        outcome_values: `(params, states, actions) -> values` of every outcome, for the player who acts, reward
            included, in place of `afterstate`: the chance node's value is their expectation. That expectation, less the
            outcome's own value, is added to the reward of an outcome's edge: a control variate, 0 in the mean. So an
            outcome changes the node only by what the search finds beyond the values given here, in whatever order
            outcomes are visited.

    Returns:
        A model over W = max(A, C) slots, see `for_actions`.

    Raises:
        ValueError: something else in place of the game or the outcomes; both `afterstate` and `outcome_values`; while
            tracing: not C probabilities or values.

    >>> import jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("2048")
    >>> guess = models.perfect(game, lambda params, obs: (jnp.zeros((len(obs), 4)), jnp.zeros(len(obs))))
    >>> policy = jz.alphazero(with_outcomes(guess, game, sampled(game, 8)), num_simulations=20)
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> out = jax.jit(for_actions(policy, 4))(None, keys, jax.vmap(game.init)(keys))
    >>> out.action_weights.shape, out.tree.num_edges
    ((2, 4), 8)
    """
    check_game("with_outcomes", game)
    if not isinstance(outcomes, Outcomes):
        raise ValueError(f"outcomes={outcomes!r}: give Outcomes, like sampled(game, 16).")
    if afterstate is not None and outcome_values is not None:
        raise ValueError(
            "with_outcomes with afterstate and outcome_values: both give the values of chance nodes. Pass only one."
        )
    width = max(game.num_actions, outcomes.count)

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        said, packed = model.root(params, keys, state)
        said = said._replace(
            prior_logits=widened(said.prior_logits, width),
            legal=widened(jax.vmap(game.legal)(state), width),
            chance=jnp.zeros(len(said.prior_logits), bool),
        )
        return said, Moment(packed, jnp.zeros_like(said.chance, jnp.int32), jnp.zeros_like(_data(keys)), said.chance)

    def step(params: Params, keys: Keys, edge: Int[Array, "B"], at: Moment) -> tuple[Step, Moment]:
        keys = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
        action = jnp.where(at.chance, at.action, edge)
        key = select_rows(at.chance, at.key, _data(keys[:, 0]))
        weights = _weights(outcomes, at.state, action)
        guess = jax.vmap(jax.random.categorical)(keys[:, 1], jnp.log(weights))
        outcome = jnp.where(at.chance, jnp.minimum(edge, outcomes.count - 1), guess)
        after = jax.vmap(outcomes.step)(at.state, action, outcome, _key(key, keys))
        said, packed = model.root(params, keys[:, 2], after)
        if outcomes.happens is None:
            happens = jnp.sum(weights > 0, -1) > 1
        else:
            happens = jax.vmap(outcomes.happens)(at.state, action, after)
        happens = happens & ~at.chance
        decision = _decision(game, width, discount, at.state, after, said)
        waiting = _waiting(game, width, at.state, decision, weights)
        if afterstate is not None:
            waiting = waiting._replace(value=afterstate(params, at.state, action).astype(waiting.value.dtype))
        if outcome_values is not None:
            values = outcome_values(params, at.state, action).astype(waiting.value.dtype)
            expected, beyond = _expected(weights, values, outcome)
            waiting = waiting._replace(value=expected)
            decision = decision._replace(reward=select_rows(at.chance, decision.reward + beyond, decision.reward))
        # Only chance nodes read their key. Elsewhere it is 0, so that a graph recognises equal positions.
        below = Moment(packed, jnp.zeros_like(action), jnp.zeros_like(key), happens)
        return select_rows(happens, waiting, decision), select_rows(
            happens, Moment(at.state, action, key, happens), below
        )

    return Model(root, step)


def _weights(outcomes: Outcomes, state: State, action: Int[Array, "B"]) -> Float[Array, "B C"]:
    weights = jax.vmap(outcomes.probabilities)(state, action)
    if weights.shape[1:] != (outcomes.count,):
        raise ValueError(
            f"Outcomes.probabilities returned shape {weights.shape[1:]}; to match its count it must be "
            f"({outcomes.count},)."
        )
    return weights


def _expected(weights: Float[Array, "B C"], values: Float[Array, "B C ..."], outcome: Int[Array, "B"]) -> tuple:
    """The expectation of the outcomes' values, and by how much it exceeds the value of `outcome`."""
    if values.shape[:2] != weights.shape:
        raise ValueError(
            f"outcome_values returned shape {values.shape} for {weights.shape} outcomes; it must be one value each."
        )
    p = (weights / jnp.maximum(weights.sum(-1, keepdims=True), 1e-30)).reshape(weights.shape + (1,) * (values.ndim - 2))
    expected = jnp.sum(jnp.where(p > 0, p * values, 0), 1)
    index = outcome.reshape((-1,) + (1,) * (values.ndim - 1))
    return expected, expected - jnp.take_along_axis(values, index, 1)[:, 0]


def _decision(game: Game, width: int, discount: Any, before: State, after: State, said: Step) -> Step:
    """The Step of the position that follows, with the logits and the value of `said`, the model's answer for it."""
    terminal, reward = jax.vmap(game.terminal)(after), jax.vmap(game.rewards)(after)
    if game.num_players <= 2:
        reward = jnp.take_along_axis(reward, jax.vmap(game.to_play)(before)[:, None], 1)[:, 0]
    return Step(
        prior_logits=widened(said.prior_logits, width),
        value=select_rows(terminal, jnp.zeros_like(said.value), said.value),
        reward=reward,
        discount=jnp.where(terminal, 0.0, discount).astype(said.value.dtype),
        legal=widened(jax.vmap(game.legal)(after), width),
        terminal=terminal,
        to_play=jax.vmap(game.to_play)(after),
        chance=jnp.zeros_like(terminal),
        truncated=None if game.truncated is None else jax.vmap(game.truncated)(after),
    )


def _waiting(game: Game, width: int, before: State, following: Step, weights: Float[Array, "B C"]) -> Step:
    """The Step of the chance node above: for the player who acted, with the value of one of its outcomes."""
    mover, value = jax.vmap(game.to_play)(before), following.value
    if game.num_players <= 2:
        value = select_rows(following.to_play == mover, value, -value)
    onwards = following.discount.reshape((-1,) + (1,) * (value.ndim - 1))
    return following._replace(
        prior_logits=widened(jnp.log(weights).astype(following.prior_logits.dtype), width),
        value=(following.reward + onwards * value).astype(value.dtype),
        reward=jnp.zeros_like(following.reward),
        discount=jnp.ones_like(following.discount),
        legal=widened(weights > 0, width),
        terminal=jnp.zeros_like(following.terminal),
        to_play=mover,
        chance=jnp.ones_like(following.chance),
        truncated=None if following.truncated is None else jnp.zeros_like(following.truncated),
    )


def for_actions(policy: Callable[..., PolicyOutput], num_actions: int) -> Callable[..., PolicyOutput]:
    """The same policy with weights, visits and Q-values `[B, A]`: slots that only outcomes need are cut off.

    Args:
        policy: of a model with more outcomes than actions.
        num_actions: A.

    Raises:
        ValueError: when called: more than the tree has slots.
    """

    def cut(x: Array) -> Array:
        return x[:, :num_actions]

    def whole(weights: Array) -> Array:  # where nothing is legal, some weight lies on slots that are cut off
        left = cut(weights)
        return left / jnp.sum(left, -1, keepdims=True)

    def narrow(*args: Any, **options: Any) -> PolicyOutput:
        out = policy(*args, **options)
        found = out.info.summary
        if num_actions > found.visits.shape[1]:
            raise ValueError(f"for_actions(policy, {num_actions}): its trees have only {found.visits.shape[1]} slots.")
        shares, weights = whole(found.visit_probs), whole(out.action_weights)
        found = found._replace(visits=cut(found.visits), visit_probs=shares, qvalues=cut(found.qvalues))
        action = jnp.where(out.action < num_actions, out.action, 0)  # else nothing is legal
        return out.replace(action=action, action_weights=weights, info=out.info._replace(summary=found))

    return narrow


def with_listed_outcomes(
    build: Callable[[Model], Callable[..., PolicyOutput]], model: Model, game: Game, discount: float = 1.0
) -> Callable[..., PolicyOutput]:
    """The policy that `build` makes from a model with rules; with chance nodes if the game lists its outcomes.

    Args:
        build: `model -> policy`.
        model: by the game's rules, see `with_outcomes`.
        game: the rules.
        discount: γ of a step of the game.

    >>> import jaxzero as jz
    >>> from jaxzero import games, models
    >>> game, keys = games.game_2048(), jax.random.split(jax.random.key(0), 2)
    >>> policy = with_listed_outcomes(lambda model: jz.uct(model, 20), models.rollout(game), game)
    >>> out = jax.jit(policy)(None, keys, jax.vmap(game.init)(keys))
    >>> out.action_weights.shape, out.tree.num_edges  # four moves, and 32 tiles that may appear
    ((2, 4), 32)
    """
    if game.outcomes is None:
        return build(model)
    return for_actions(build(with_outcomes(model, game, game.outcomes, discount)), game.num_actions)


def widened(x: Array, width: int) -> Float[Array, "B W"]:
    """The array with slots added: closed ones in a mask, zeros in numbers."""
    return jnp.pad(x, ((0, 0), (0, width - x.shape[1])))


def select_rows(mask: Bool[Array, "B"], one: Any, other: Any) -> Any:
    """For each game the entries of one tree of arrays, or of the other."""
    return jax.tree.map(lambda x, y: jnp.where(mask.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), one, other)


def _data(keys: Keys) -> Array:
    """Keys as plain numbers, which a tree can store."""
    return jax.random.key_data(keys) if jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) else keys


def _key(data: Array, like: Keys) -> Keys:
    """The keys again, of the kind of `like`."""
    typed = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like)) if typed else data
