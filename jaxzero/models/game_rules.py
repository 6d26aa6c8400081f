"""The rules half of a model; the evaluation is passed in."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.games import Game
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["Evaluate", "Network", "check_answer", "entry", "told", "with_rules"]


Network = Callable[[Params, Float[Array, "B ..."]], tuple[Float[Array, "B A"], Float[Array, "B"] | Float[Array, "B P"]]]
Evaluate = Callable[[Params, Keys, State], tuple[Float[Array, "B A"], Float[Array, "B"] | Float[Array, "B P"]]]


def with_rules(game: Game, evaluate: Evaluate, discount: float | Float[Array, ""]) -> Model:
    """A model by a game's rules, which give everything in a Step but logits and value; `evaluate` gives those."""

    def described(state: State, reward: Array) -> Step:
        terminal = told(game, "terminal", state)
        return Step(
            prior_logits=jnp.zeros((len(terminal), game.num_actions)),
            value=jnp.zeros_like(reward),
            reward=reward,
            discount=jnp.where(terminal, 0.0, discount),
            legal=told(game, "legal", state),
            terminal=terminal,
            to_play=told(game, "to_play", state),
            truncated=None if game.truncated is None else told(game, "truncated", state),
        )

    def evaluated(params: Params, keys: Keys, step: Step, state: State) -> Step:
        logits, value = evaluate(params, keys, state)
        over = step.terminal if value.ndim == 1 else step.terminal[:, None]
        return step._replace(prior_logits=logits, value=jnp.where(over, 0, value))

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        rewards = told(game, "rewards", state)
        step = described(state, jnp.zeros_like(rewards if game.num_players > 2 else rewards[:, 0]))
        return evaluated(params, keys, step, state), jax.vmap(game.pack)(state)

    def move(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State, State]:
        del params
        keys = jax.vmap(jax.random.split)(keys)  # XLA removes what a deterministic game or a network does not draw
        state = jax.vmap(game.step)(embedding, action, keys[:, 0])
        reward = told(game, "rewards", state)
        if game.num_players <= 2:
            reward = entry(reward, told(game, "to_play", embedding))
        return described(state, reward), state, jax.vmap(game.pack)(state)

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        step, state, packed = move(params, keys, action, embedding)
        return evaluated(params, _second(keys), step, state), packed

    return Model(root, step, move, lambda params, keys, state: evaluate(params, _second(keys), state))


def told(game: Game, name: str, states: State) -> Array:
    """What one of the game's functions returns for a batch of positions.

    Raises:
        ValueError: another shape or type than the game's record promises. A reward per position in place of one per
            player, say, would be read as the wrong player's.
    """
    answer = jax.vmap(getattr(game, name))(states)
    if not hasattr(answer, "shape"):
        raise ValueError(f"the game {game.id!r}: {name}(state) gives a {type(answer).__name__}: give one array.")
    shape, kind = {
        "observe": (tuple(game.observation_shape), jnp.generic),
        "legal": ((game.num_actions,), jnp.bool_),
        "to_play": ((), jnp.integer),
        "terminal": ((), jnp.bool_),
        "rewards": ((game.num_players,), jnp.floating),
        "truncated": ((), jnp.bool_),
        "decisive": ((game.num_actions,), jnp.bool_),
    }[name]
    if answer.shape[1:] != shape or not jnp.issubdtype(answer.dtype, kind):
        of = "" if kind is jnp.generic else f"type {kind.__name__.rstrip('_')} and "
        raise ValueError(
            f"the game {game.id!r}: {name}(state) gives an array of type {answer.dtype} and shape {answer.shape[1:]}; "
            f"by num_players={game.num_players}, num_actions={game.num_actions} and observation_shape="
            f"{tuple(game.observation_shape)} it must be one of {of}shape {shape}."
        )
    return answer


def _second(keys: Keys) -> Keys:
    """The keys that are left for the evaluation when the step has taken its own."""
    return jax.vmap(jax.random.split)(keys)[:, 1]


def entry(per_player: Float[Array, "B P"], player: Int[Array, "B"]) -> Float[Array, "B"]:
    """Each game's number for one player."""
    return jnp.take_along_axis(per_player, player[:, None], axis=1)[:, 0]


def check_answer(game: Game, field: str, array: Array, letters: str, expected: tuple[int, ...]) -> None:
    """Raises a ValueError if what a network returned is of another shape."""
    shape = jnp.shape(array)
    if shape != expected:
        raise ValueError(
            f"perfect({game.id!r}, network): the network returned {field} of shape {list(shape)}, "
            f"expected {letters} = {list(expected)}."
        )
