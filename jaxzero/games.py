"""Games as records of pure functions, and the adapter that makes one from a pgx environment."""

import difflib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import State

__all__ = ["Game", "Symmetry", "from_pgx"]

Observation = Float[Array, "..."]


class Symmetry(NamedTuple):
    """A relabelling of positions and actions that the rules cannot tell apart.

    Attributes:
        observation: the transformed observation (one position, no batch axis).
        actions: action i of the transformed position is action `actions[i]` of the original one, so
            policies, masks and visit counts are carried over by `policy[..., jnp.array(actions)]`.
    """

    observation: Callable[[Observation], Observation]
    actions: tuple[int, ...]


class Game(NamedTuple):
    """The rules of a game, for one position each: use `jax.vmap` for a batch.

    Attributes:
        id: the game's name.
        num_actions: A, a Python int.
        num_players: P, a Python int.
        observation_shape: shape of what `observe` returns.
        init: `key -> state`. Who moves first is the game's choice (in pgx a random player): ask `to_play`.
        step: `(state, action, key) -> state`. Takes packed states too, returns an unpacked one. The key is for
            games of chance, the others ignore it. On a terminal state nothing changes, and rewards are 0.
        observe: `state -> float32 observation` from the view of the player to move.
        legal: `state -> bool [A]`, True where an action may be taken; all False once the game is over.
        to_play: `state -> int32`, the player to move, 0 ... P-1.
        terminal: `state -> bool`, True when the game is over, by rule or by truncation.
        rewards: `state -> float32 [P]`, what the last step paid, entry p to player p.
        pack: `state -> state` without what the rules can derive again (the legal mask): what a tree stores.
        symmetries: the identity, and whatever else leaves the rules as they are.
    """

    id: str
    num_actions: int
    num_players: int
    observation_shape: tuple[int, ...]
    init: Callable[[chex.PRNGKey], State]
    step: Callable[[State, Int[Array, ""], chex.PRNGKey], State]
    observe: Callable[[State], Observation]
    legal: Callable[[State], Bool[Array, "A"]]
    to_play: Callable[[State], Int[Array, ""]]
    terminal: Callable[[State], Bool[Array, ""]]
    rewards: Callable[[State], Float[Array, "P"]]
    pack: Callable[[State], State]
    symmetries: tuple[Symmetry, ...]


@functools.cache  # one record per game: functions that close over it keep their compiled code in a notebook
def from_pgx(env_id: str) -> Game:
    """The game that pgx knows by this id (Koyamada et al. 2023, "Pgx", NeurIPS).

    States are pgx's own (`state.to_svg()` works) except that they hold no observation: `observe` computes it
    when asked, so a step does not pay for it. The legal mask is known until the state is packed; `legal` of a
    packed state is an error, and a step from one takes the action to be legal. From an unpacked state an
    illegal action does what pgx does: the game ends, and the mover pays.

    Go: the mask does not know positional superko. An action that repeats a position counts as legal, and
    loses at once. Othello: where neither side can move, two passes are played before the game ends (OpenSpiel
    ends it without). Needs jax's default 32-bit mode: pgx fails under `jax_enable_x64`.

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
                f"legal(state) of {env_id} was given a packed state, which holds no mask: "
                "ask for it before pack(state), or after the next step."
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
        pack=lambda state: state.replace(legal_action_mask=None),
        symmetries=_symmetries(env_id, num_actions),
    )


def _make(env_id: str) -> Any:
    try:
        import pgx
    except ImportError as error:
        raise ImportError(
            f"from_pgx({env_id!r}) needs pgx, which is not installed: pip install 'jaxzero[games]'"
        ) from error
    known = pgx.available_envs()
    if env_id not in known:
        nearest = difflib.get_close_matches(str(env_id), known, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"from_pgx({env_id!r}): no such game.{hint} Known games: {', '.join(known)}.")
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


def _turn(board: Any, quarters: int = 0, mirror: bool = False) -> Any:
    """Mirrors the columns, then makes quarter turns of the first two axes: observations and index grids alike."""
    board = board[:, ::-1] if mirror else board
    for _ in range(quarters):
        board = board.swapaxes(0, 1)[::-1]
    return board


_SQUARE = tuple((quarters, mirror) for mirror in (False, True) for quarters in range(4))
_TURNS = {  # (quarters, mirror), the identity first
    "tic_tac_toe": _SQUARE,
    "go_9x9": _SQUARE,
    "go_19x19": _SQUARE,
    "othello": ((0, False), (2, False), (1, True), (3, True)),  # the others swap the colours of the opening's stones
    "hex": ((0, False), (2, False)),  # the others exchange the two players' sides
}


def _symmetries(env_id: str, num_actions: int) -> tuple[Symmetry, ...]:
    identity = Symmetry(_turn, tuple(range(num_actions)))
    if env_id == "connect_four":  # actions are columns
        return identity, Symmetry(functools.partial(_turn, mirror=True), identity.actions[::-1])
    if env_id not in _TURNS:
        return (identity,)
    size = int(np.sqrt(num_actions))
    # actions are the squares row by row, then pass or swap, which stay
    squares = np.arange(size * size).reshape(size, size)
    turns = [functools.partial(_turn, quarters=quarters, mirror=mirror) for quarters, mirror in _TURNS[env_id]]
    return tuple(Symmetry(turn, (*turn(squares).ravel().tolist(), *identity.actions[size * size :])) for turn in turns)
