"""The Game record of a pgx environment."""

import difflib
import functools
import warnings
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.games import othello_wins
from jaxzero.games.game import SQUARE, Game, Observation, Symmetry, board_symmetries, turn
from jaxzero.games.hex import canonical_form
from jaxzero.games.input_features.connections import connection_features
from jaxzero.games.input_features.lines import line_features
from jaxzero.types import State

__all__ = ["from_pgx"]

INPUT_FEATURES = {
    "connect_four": line_features(6, 7, 4, falling=True),
    "hex": connection_features,
    "tic_tac_toe": line_features(3, 3, 3),
}


@functools.cache  # one record per game: functions that close over it keep their compiled code in a notebook
def from_pgx(env_id: str) -> Game:
    """The game that pgx knows by this id (Koyamada et al. 2023, "Pgx", NeurIPS).

    States are pgx's own (`state.to_svg()` works) except that they hold no observation: `observe` computes it
    when asked, so a step does not pay for it. States of `pgx.make(env_id)`, which hold one, are taken, too. The
    legal mask is known until the state is packed; `legal` of a packed state is an error, and a step from one
    takes the action to be legal. From an unpacked state an illegal action does what pgx does: the game ends,
    and the mover pays.

    Go: the mask does not know positional superko. An action that repeats a position counts as legal, and
    loses at once. (`games.go` is another Go, of any size, and many times faster.) Othello: where neither side can
    move, two passes are played before the game ends (OpenSpiel ends it without); it names its decisive moves.
    Needs jax's default 32-bit mode: pgx fails under `jax_enable_x64`.

    Args:
        env_id: one of `pgx.available_envs()`, e.g. "tic_tac_toe", "connect_four", "othello", "hex", "go_9x9".

    Raises:
        ImportError: pgx is not installed.
        ValueError: pgx knows no such game; the message lists the known ids and the nearest.

    >>> import jax
    >>> game = from_pgx("connect_four")
    >>> state = game.step(game.init(jax.random.key(0)), 3, jax.random.key(1))
    >>> int(game.legal(state).sum()), bool(game.terminal(state)), game.observe(state).shape
    (7, False, (6, 7, 2))
    """
    env = _make(env_id)
    num_actions, observation_shape = _shapes(env)

    def init(key: chex.PRNGKey) -> State:
        return _normalise(env.init(key))

    def step(state: State, action: Int[Array, ""], key: chex.PRNGKey) -> State:
        if state.legal_action_mask is None:
            state = state.replace(legal_action_mask=jnp.ones(num_actions, jnp.bool_))
        return _normalise(env.step(state, action, key))

    def observe(state: State) -> Observation:
        return env.observe(state).astype(jnp.float32)

    def legal(state: State) -> Bool[Array, "A"]:
        if state.legal_action_mask is None:
            raise ValueError(
                f"legal(state) of {env_id} was given a packed state, which holds no mask. Call it before pack(state), "
                "or after the next step."
            )
        return state.legal_action_mask & ~terminal(state)  # pgx marks every action of a finished game legal

    def terminal(state: State) -> Bool[Array, ""]:
        return state.terminated | state.truncated

    return Game(
        id=env_id,
        num_actions=num_actions,
        num_players=env.num_players,
        observation_shape=observation_shape,
        init=init,
        step=step,
        observe=observe,
        legal=legal,
        terminal=terminal,
        to_play=lambda state: state.current_player.astype(jnp.int32),
        rewards=lambda state: state.rewards.astype(jnp.float32),
        pack=lambda state: _normalise(state.replace(legal_action_mask=None)),
        symmetries=_symmetries(env_id, num_actions),
        truncated=lambda state: state.truncated & ~state.terminated,
        decisive=othello_wins.decisive if env_id == "othello" else None,
        canonical=canonical_form(observation_shape[0]) if env_id == "hex" else None,
        input_features=INPUT_FEATURES.get(env_id),
    )


def _make(env_id: str) -> Any:
    try:
        import pgx
    except ImportError as error:
        raise ImportError(f"from_pgx({env_id!r}) needs pgx, which is not installed: pip install -U pgx") from error
    known = pgx.available_envs()
    if env_id not in known:
        nearest = difflib.get_close_matches(str(env_id), known, n=1, cutoff=0.6)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"from_pgx({env_id!r}): no such game.{hint} Known games: {', '.join(known)}.")
    if env_id in HIDDEN:
        warnings.warn(
            f"{env_id} has hidden cards, but a search sees the whole state, including what a player cannot know.",
            stacklevel=3,
        )
    return pgx.make(env_id)


def _shapes(env: Any) -> tuple[int, tuple[int, ...]]:
    """A and the shape of an observation, without running (and so compiling) anything."""

    def probe(key):
        state = env.init(key)
        return state.legal_action_mask, env.observe(state)

    mask, observation = jax.eval_shape(probe, jax.random.key(0))
    return mask.shape[0], observation.shape


def _normalise(state: Any) -> Any:
    """The state without its observation, and with one type per field.

    pgx's initial states hold Python numbers in places: weak types there would make a second compilation of
    every function that is given an initial state first and a stepped one later.
    """
    return jax.tree.map(
        lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), state.replace(observation=None)
    )


HIDDEN = ("bridge_bidding", "kuhn_poker", "leduc_holdem", "sparrow_mahjong")  # where players do not see all cards

_TURNS = {  # (quarters, mirror), the identity first
    "tic_tac_toe": SQUARE,
    "go_9x9": SQUARE,
    "go_19x19": SQUARE,
    "othello": ((0, False), (2, False), (1, True), (3, True)),  # the others swap the colours of the opening's stones
    "hex": ((0, False), (2, False)),  # the others exchange the two players' sides
}


def _symmetries(env_id: str, num_actions: int) -> tuple[Symmetry, ...]:
    identity = Symmetry(turn, tuple(range(num_actions)))
    if env_id == "connect_four":  # actions are columns
        return identity, Symmetry(functools.partial(turn, mirror=True), identity.actions[::-1])
    return board_symmetries(num_actions, _TURNS[env_id]) if env_id in _TURNS else (identity,)
