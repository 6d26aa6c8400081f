"""Models of games of chance: each action leads to a chance node with several outcomes.

Without this, an edge of `models.perfect` keeps the one outcome that was drawn when it was expanded: a search of one
possible future, good enough where chance matters little. Here an action leads to a chance node
(`jaxzero.search.chance_nodes`), from which each of C outcomes leads on, so that an action is worth its mean over what
may follow:

    outcomes = chance.sampled(game, 16)                     # any game whose step takes a key
    model    = chance.with_outcomes(models.perfect(game, net), game, outcomes)
    policy   = jaxzero.gumbel(model, num_simulations=128)          # or any other

With `sampled`, the C outcomes of each chance node are draws, each worth 1/C: a sample average, whose error of O(1/√C)
no number of simulations removes. Where all outcomes can be listed, do so, with `by_keys` (the dice of backgammon) or
`Outcomes` of your own: then the search has the probabilities themselves, and its error goes like 1/N.

To keep the tree from move to move, say what was played and the slot of what came about, where chance had a part:
`tree = jaxzero.advance(tree, jaxzero.options.action_and_outcome(tree, action, outcome))`. (`sampled` does not tell its
slots: begin anew.)

What it costs: a node for the chance node and one for each outcome seen, so a given number of simulations looks less far
ahead; with large C and few simulations hardly further than one step. Each simulation makes one step of the game and one
evaluation, as without.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.types import Keys, Model, Params, PolicyOutput, State, Step

__all__ = ["Outcomes", "by_keys", "for_actions", "sampled", "with_outcomes"]


class Outcomes(NamedTuple):
    """How chance completes a step of a game, for one position each.

    Attributes:
        count: C, a Python int: the most outcomes that a step can have.
        probabilities: `(state, action) -> [C]`, up to a factor; 0 for what cannot happen.
        step: `(state, action, outcome, key) -> state`: the action taken and the outcome added, an unpacked state. The
            key is that of the chance node, the same for all of its outcomes; exact ones do without.
        happens: `(state, action, following) -> bool`: whether chance had a part in the step that led to `following`.
            If not, no chance node is made. None: where more than one outcome has a probability above 0.
    """

    count: int
    probabilities: Callable[[State, Int[Array, ""]], Float[Array, "C"]]
    step: Callable[[State, Int[Array, ""], Int[Array, ""], chex.PRNGKey], State]
    happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None


def sampled(
    game: Game, count: int, happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None
) -> Outcomes:
    """C outcomes drawn for every chance node, each worth 1/C: a step with a key folded from the node's own.

    Args:
        game: the rules; `game.step` draws with the key it is given.
        count: C.
        happens: see `Outcomes`; None: with every step. In backgammon the dice are rolled when the turn passes:
            `lambda state, action, following: game.to_play(state) != game.to_play(following)`.

    Raises:
        ValueError: fewer than two outcomes.

    >>> from jaxzero import games
    >>> game = games.from_pgx("2048")
    >>> sampled(game, 8).probabilities(game.init(jax.random.key(0)), 3).tolist()
    [0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]
    """
    if count < 2:
        raise ValueError(
            f"sampled(count={count}): a chance node takes two outcomes or more. Use count >= 2, or the model without "
            "chance nodes, whose edges keep one."
        )
    return Outcomes(
        count,
        probabilities=lambda state, action: jnp.full(count, 1 / count),
        step=lambda state, action, outcome, key: game.step(state, action, jax.random.fold_in(key, outcome)),
        happens=happens,
    )


def by_keys(
    game: Game,
    keys: Keys,
    probabilities: Float[Array, "C"],
    happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None,
) -> Outcomes:
    """All outcomes of a game whose chance hangs on the key alone, as dice do: the C keys that bring them about.

    Args:
        game: the rules.
        keys: one for each outcome, `[C]`.
        probabilities: of the outcomes, up to a factor.
        happens: see `Outcomes`; None: with every step.

    Raises:
        ValueError: another number of probabilities than of keys, or fewer than two.

    The 21 rolls of backgammon's dice, of which pgx makes one as is done here:

    >>> import numpy as np
    >>> from jaxzero import games
    >>> game, keys = games.from_pgx("backgammon"), jax.random.split(jax.random.key(0), 500)
    >>> roll = jax.vmap(lambda key: jnp.sort(jax.random.randint(key, (1, 2), 0, 6)[0]))
    >>> rolls, found = np.unique(roll(keys), axis=0, return_index=True)
    >>> passes = lambda state, action, following: game.to_play(state) != game.to_play(following)
    >>> by_keys(game, keys[found], jnp.where(rolls[:, 0] == rolls[:, 1], 1 / 36, 2 / 36), passes).count
    21
    """
    count = len(keys)
    if count < 2 or jnp.shape(probabilities) != (count,):
        raise ValueError(
            f"by_keys with {count} keys and probabilities of shape {jnp.shape(probabilities)}: give two keys or more, "
            f"and one probability for each, [{count}]."
        )
    return Outcomes(
        count,
        probabilities=lambda state, action: jnp.asarray(probabilities),
        step=lambda state, action, outcome, key: game.step(state, action, keys[outcome]),
        happens=happens,
    )


class Moment(NamedTuple):
    """What the tree stores: a position; or, at a chance node, the position before and what was done there.

    Attributes:
        state: packed.
        action: taken there; 0 at a decision.
        key: of the chance node, as data.
        chance: which of the two it is.
    """

    state: State
    action: Int[Array, "B"]
    key: Array
    chance: Bool[Array, "B"]


def with_outcomes(model: Model, game: Game, outcomes: Outcomes, discount: float | Float[Array, ""] = 1.0) -> Model:
    """A model whose actions lead to chance nodes, and whose outcomes lead on.

    A chance node is seen by the player who acted. It is first valued at one of its outcomes, drawn by their
    probabilities: reward included, an unbiased guess that counts as one visit. Rewards and γ are on the edges of
    outcomes; the edge into a chance node pays nothing and discounts nothing.

    Args:
        model: says what positions are worth, `model.root` of the game's unpacked states: `models.perfect`,
            `models.rollout`. (A rollout draws its own chances.)
        game: the rules.
        outcomes: `sampled(game, C)`, `by_keys`, or others.
        discount: γ of a step of the game; that of `model` is not asked for.

    Returns:
        A model over W = max(A, C) slots, see `for_actions`.

    Raises:
        ValueError: something else in place of the game or the outcomes; while tracing: not C probabilities.

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
    width = max(game.num_actions, outcomes.count)

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        said, packed = model.root(params, keys, state)
        said = said._replace(
            prior_logits=_widened(said.prior_logits, width),
            legal=_widened(jax.vmap(game.legal)(state), width),
            chance=jnp.zeros(len(said.prior_logits), bool),
        )
        return said, Moment(packed, jnp.zeros_like(said.chance, jnp.int32), jnp.zeros_like(_data(keys)), said.chance)

    def step(params: Params, keys: Keys, edge: Int[Array, "B"], at: Moment) -> tuple[Step, Moment]:
        keys = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
        action = jnp.where(at.chance, at.action, edge)
        key = _where(at.chance, at.key, _data(keys[:, 0]))
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
        # Only a chance node's key is ever read: equal positions are stored alike, so that a graph finds them.
        below = Moment(packed, jnp.zeros_like(action), jnp.zeros_like(key), happens)
        return _where(happens, waiting, decision), _where(happens, Moment(at.state, action, key, happens), below)

    return Model(root, step)


def _weights(outcomes: Outcomes, state: State, action: Int[Array, "B"]) -> Float[Array, "B C"]:
    weights = jax.vmap(outcomes.probabilities)(state, action)
    if weights.shape[1:] != (outcomes.count,):
        raise ValueError(
            f"Outcomes.probabilities returned shape {weights.shape[1:]}; by its count it must be ({outcomes.count},)."
        )
    return weights


def _decision(game: Game, width: int, discount: Any, before: State, after: State, said: Step) -> Step:
    """What there is to say of the position that follows, of which the model says `said`."""
    terminal, reward = jax.vmap(game.terminal)(after), jax.vmap(game.rewards)(after)
    if game.num_players <= 2:
        reward = jnp.take_along_axis(reward, jax.vmap(game.to_play)(before)[:, None], 1)[:, 0]
    return Step(
        prior_logits=_widened(said.prior_logits, width),
        value=_where(terminal, jnp.zeros_like(said.value), said.value),
        reward=reward,
        discount=jnp.where(terminal, 0.0, discount).astype(said.value.dtype),
        legal=_widened(jax.vmap(game.legal)(after), width),
        terminal=terminal,
        to_play=jax.vmap(game.to_play)(after),
        chance=jnp.zeros_like(terminal),
        truncated=None if game.truncated is None else jax.vmap(game.truncated)(after),
    )


def _waiting(game: Game, width: int, before: State, following: Step, weights: Float[Array, "B C"]) -> Step:
    """The chance node above: seen by who acted, worth what one of its outcomes is."""
    mover, value = jax.vmap(game.to_play)(before), following.value
    if game.num_players <= 2:
        value = _where(following.to_play == mover, value, -value)
    onwards = following.discount.reshape((-1,) + (1,) * (value.ndim - 1))
    return following._replace(
        prior_logits=_widened(jnp.log(weights).astype(following.prior_logits.dtype), width),
        value=(following.reward + onwards * value).astype(value.dtype),
        reward=jnp.zeros_like(following.reward),
        discount=jnp.ones_like(following.discount),
        legal=_widened(weights > 0, width),
        terminal=jnp.zeros_like(following.terminal),
        to_play=mover,
        chance=jnp.ones_like(following.chance),
        truncated=None if following.truncated is None else jnp.zeros_like(following.truncated),
    )


def for_actions(policy: Callable[..., PolicyOutput], num_actions: int) -> Callable[..., PolicyOutput]:
    """The same policy, whose weights, visits and Q-values are `[B, A]`: the slots that only outcomes need are cut off.

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
            raise ValueError(f"for_actions(policy, {num_actions}): its trees have {found.visits.shape[1]} slots only.")
        shares, weights = whole(found.visit_probs), whole(out.action_weights)
        found = found._replace(visits=cut(found.visits), visit_probs=shares, qvalues=cut(found.qvalues))
        action = jnp.where(out.action < num_actions, out.action, 0)  # else nothing is legal
        return out.replace(action=action, action_weights=weights, info=out.info._replace(summary=found))

    return narrow


def _widened(x: Array, width: int) -> Float[Array, "B W"]:
    """With slots added: closed ones, and 0 for a number."""
    return jnp.pad(x, ((0, 0), (0, width - x.shape[1])))


def _where(mask: Bool[Array, "B"], one: Any, other: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(mask.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), one, other)


def _data(keys: Keys) -> Array:
    """Keys as plain numbers, which a tree can store."""
    return jax.random.key_data(keys) if jnp.issubdtype(keys.dtype, jax.dtypes.prng_key) else keys


def _key(data: Array, like: Keys) -> Keys:
    """The keys again, of the kind of `like`."""
    typed = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(like)) if typed else data
