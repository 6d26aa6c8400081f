"""The Game record: the rules of a game as pure functions of one position, and its symmetries."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games.outcomes import Outcomes
from jaxzero.types import Keys, State

__all__ = [
    "SQUARE",
    "CanonicalForm",
    "Game",
    "Observation",
    "Symmetry",
    "board_symmetries",
    "check_game",
    "shown",
    "turn",
]

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


class CanonicalForm(NamedTuple):
    """How an observation of the second player becomes one of the first, where the rules give them different roles.

    In most games an observation shows the mover's stones and the other's, and both players have the same goal. In Hex
    one player joins top and bottom, the other left and right, so a network learns everything twice, unless it sees the
    second player's positions in the first player's form (`nets.windows(game, canonical=True)`).

    Attributes:
        of_second: `observation -> bool` (one position, no batch axis): whether it is of the second player.
        symmetry: turns such an observation into the one that the first player has with exchanged roles, and maps its
            actions.
    """

    of_second: Callable[[Observation], Bool[Array, ""]]
    symmetry: Symmetry


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
        symmetries: the identity, and whatever else leaves the rules as they are; none: unknown.
        playout: `(keys [L], states [L, ...], max_steps) -> float32 [L, P]`, a whole batch at once: what random play
            from these positions pays each player, undiscounted. For a game that knows a better or quicker way than
            uniformly random legal actions; None: it has none of its own. See `jaxzero.models.playout_functions`.
        truncated: `state -> bool`, True when the game is over by a limit only, not by its rules; None: never.
        action_names: what each action is called, where people see it, without blanks; none: by the board, or numbers.
        draw: `state -> str`, one position as an `<svg>` element, for people, called outside of `jax.jit`. None: in a
            game of two whose observation is [rows, columns, planes], with an action for each square, the first two
            planes are drawn as stones; of other games there is no picture.
        outcomes: of a game of chance, the possible outcomes of a step with their probabilities: a search then has a
            node for chance itself (`jaxzero.models.chance`). None: they are not listed, or there is no chance.
        text: `state -> str`, one position in letters, in a line or a few, for the terminal. None: a board of stones is
            drawn; of other games only the moves are shown.
        decisive: `state -> bool [A]` of an unpacked state, the legal actions that end the game at once and pay the
            mover 1: a search that knows them blunders less, see `jaxzero.models.decisive_moves`. For games of few
            actions `games.decisive_by_trying` makes it. None: not given. Whoever changes the rules of a record must
            replace this, or set it to None.
        canonical: how a network may see the second player's positions as the first player's. None: observations
            of both already mean the same, or it is not given. (Not `jaxzero.transpositions(canonical=...)`, which tells
            positions apart.)
        input_features: `observations [B, ...] -> planes [B, ..., G]`, for a whole batch: further inputs for networks,
            each row computed from its observation, that a network would learn slowly by itself. All axes but the last
            are the observation's. None: there are none.

    A game of your own: from ten stones two players take one, two or three in turn; whoever takes the last one wins.

    >>> from typing import NamedTuple
    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> class Heap(NamedTuple):
    ...     stones: jax.Array
    ...     mover: jax.Array
    ...     paid: jax.Array
    >>> def step(heap, action, key):
    ...     over = heap.stones == 0
    ...     stones = jnp.where(over, 0, heap.stones - action - 1)
    ...     won = ~over & (stones == 0)
    ...     paid = jnp.where(won, jnp.where(jnp.arange(2) == heap.mover, 1.0, -1.0), 0.0)
    ...     return Heap(stones, jnp.where(over, heap.mover, 1 - heap.mover), paid)
    >>> nim = games.Game(
    ...     id="nim",
    ...     num_actions=3,
    ...     num_players=2,
    ...     observation_shape=(11,),
    ...     init=lambda key: Heap(jnp.int32(10), jnp.int32(0), jnp.zeros(2)),
    ...     step=step,
    ...     observe=lambda heap: jax.nn.one_hot(heap.stones, 11),
    ...     legal=lambda heap: jnp.arange(3) < heap.stones,
    ...     to_play=lambda heap: heap.mover,
    ...     terminal=lambda heap: heap.stones == 0,
    ...     rewards=lambda heap: heap.paid,
    ... )
    >>> keys = jax.random.split(jax.random.key(0), 4)
    >>> out = jax.jit(jz.uct(models.rollout(nim), 500))((), keys, jax.vmap(nim.init)(keys))
    >>> out.action.tolist()  # two stones, for eight are lost
    [1, 1, 1, 1]
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
    pack: Callable[[State], State] = lambda state: state
    symmetries: tuple[Symmetry, ...] = ()
    playout: Callable[[Keys, State, int | None], Float[Array, "L P"]] | None = None
    truncated: Callable[[State], Bool[Array, ""]] | None = None
    action_names: tuple[str, ...] = ()
    draw: Callable[[State], str] | None = None
    outcomes: Outcomes | None = None
    text: Callable[[State], str] | None = None
    decisive: Callable[[State], Bool[Array, "A"]] | None = None
    canonical: CanonicalForm | None = None
    input_features: Callable[[Float[Array, "B ..."]], Float[Array, "B ..."]] | None = None

    def __repr__(self) -> str:
        """In a line, for a notebook's cell."""
        players = f"{self.num_players} player{'s' * (self.num_players != 1)}"
        return f"<Game {self.id}: {players}, {self.num_actions} actions, observations {list(self.observation_shape)}>"


def check_game(name: str, game: Any) -> None:
    """Raises a ValueError if `game` is not a `Game`; `name`: the function that it was passed to."""
    if not isinstance(game, Game):
        raise ValueError(
            f"{name}: the game is a {type(game).__name__}: give a Game, like games.from_pgx('connect_four') or "
            "games.go(9)."
        )


def shown(form: CanonicalForm, observation: Float[Array, "B ..."]) -> tuple[Float[Array, "B ..."], Bool[Array, "B"]]:
    """Observations in canonical form, and which of them were the second player's."""
    second = jax.vmap(form.of_second)(observation)
    as_first = jax.vmap(form.symmetry.observation)(observation)
    return jnp.where(second.reshape(-1, *[1] * (observation.ndim - 1)), as_first, observation), second


def turn(board: Any, quarters: int = 0, mirror: bool = False) -> Any:
    """Mirrors the columns, then makes quarter turns of the first two axes: observations and index grids alike."""
    board = board[:, ::-1] if mirror else board
    for _ in range(quarters):
        board = board.swapaxes(0, 1)[::-1]
    return board


SQUARE = tuple((quarters, mirror) for mirror in (False, True) for quarters in range(4))


def board_symmetries(num_actions: int, turns: Iterable[tuple[int, bool]] = SQUARE) -> tuple[Symmetry, ...]:
    """The symmetries of a square board by (quarters, mirror), the identity first.

    Actions are the squares row by row, then pass or swap, which stay.

    Args:
        num_actions: n · n for a board of n × n, and one or two more for pass and swap.
        turns: each how many quarters the board is turned, after it was mirrored (columns) or not. `((0, False),
            (0, True))`: left and right only.

    Raises:
        ValueError: a game with other actions than these; then write each `Symmetry` with its own order of the actions.

    >>> [symmetry.actions for symmetry in board_symmetries(5, [(0, False), (0, True)])]
    [(0, 1, 2, 3, 4), (1, 0, 3, 2, 4)]
    """
    size = int(np.sqrt(num_actions))
    if num_actions > size * size + 2:
        raise ValueError(
            f"board_symmetries(num_actions={num_actions}): the actions have to be the squares of a square board, "
            "n · n, and at most two more, pass and swap. For others write games.Symmetry(observation, actions) for the "
            "identity and for each form."
        )
    squares = np.arange(size * size).reshape(size, size)
    rest = range(size * size, num_actions)
    functions = [functools.partial(turn, quarters=quarters, mirror=mirror) for quarters, mirror in turns]
    return tuple(Symmetry(f, (*f(squares).ravel().tolist(), *rest)) for f in functions)
