"""The Environment record: what an agent acts in, as pure functions of one state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games.game import Game, Symmetry
from jaxzero.types import State

__all__ = [
    "Bounds",
    "Environment",
    "Outcome",
    "all_legal",
    "an_action",
    "check_environment",
    "signed_discount",
    "within_bounds",
]


class Outcome(NamedTuple):
    """The outcome of a step.

    Attributes:
        reward: paid to the player who acted.
        terminated: the episode ended by its rules: nothing follows, and the value of what follows is 0.
        truncated: the episode was cut by a limit: what would have followed counts, and is bootstrapped from its value.
    """

    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Bounds(NamedTuple):
    """Bounds of continuous actions, arrays `[D]`: the least and the greatest value of each coordinate."""

    low: tuple[float, ...]
    high: tuple[float, ...]


class Environment(NamedTuple):
    """An environment whose rules the search does not know, for one state each: use `jax.vmap` for a batch.

    Nothing resets itself: after the end of an episode its last state can still be observed, and the caller calls
    `reset`. The last state of a truncated episode is searched once more, for its value. So `legal` should name the
    actions that could be taken there; if it names none, only the network is asked.

    Attributes:
        id: the environment's name.
        num_actions: A, a Python int. Of continuous actions: how many a search samples at a state (Hubert et al. 2021,
            Sampled MuZero: 20).
        observation_shape: shape of what `observe` returns.
        reset: `key -> state`, the beginning of an episode.
        step: `(state, action, key) -> (state, Outcome)`. A batch may call it when an episode is over; the result of
            such a call is thrown away.
        observe: `state -> observation`, of any real type, from the view of the player to act.
        legal: `state -> bool [A]`, True where an action may be taken; None: all always are.
        num_players: 1; or 2, who alternate strictly and share one sum of zero.
        discount: γ per step.
        longest: steps in the longest episode, if a bound is known; None: unknown.
        solved: the mean return at which it counts as solved; None: unknown.
        chance: whether `step` draws from its key: a model that was learned without chance averages over it.
        symmetries: of observations and actions, the identity first; none: unknown.
        game: the rules that stand behind it, if it is a game.
        draw: `state -> str`, one state as an `<svg>` element, for people; None: there is no picture.
        bounds: of continuous actions: `step` takes a float32 array `[D]`, and training clips what it draws to these
            bounds first. None: actions are 0 ... A − 1.
    """

    id: str
    num_actions: int
    observation_shape: tuple[int, ...]
    reset: Callable[[chex.PRNGKey], State]
    step: Callable[[State, Int[Array, ""], chex.PRNGKey], tuple[State, Outcome]]
    observe: Callable[[State], Array]
    legal: Callable[[State], Bool[Array, "A"]] | None = None
    num_players: int = 1
    discount: float = 0.997
    longest: int | None = None
    solved: float | None = None
    chance: bool = False
    symmetries: tuple[Symmetry, ...] = ()
    game: Game | None = None
    draw: Callable[[State], str] | None = None
    bounds: Bounds | None = None

    def __repr__(self) -> str:
        """In a line, for a notebook's cell."""
        actions = f"{self.num_actions} actions" if self.bounds is None else f"actions of {len(self.bounds.low)} numbers"
        return f"<Environment {self.id}: {actions}, observations {list(self.observation_shape)}>"


def an_action(environment: Environment, number: Int[Array, ""], key: chex.PRNGKey) -> Array:
    """An action as `step` takes it: its number, or a uniformly random one where actions are continuous."""
    if environment.bounds is None:
        return number
    low, high = (jnp.float32(x) for x in environment.bounds)
    return jax.random.uniform(key, low.shape, minval=low, maxval=high)


def within_bounds(environment: Environment, action: Array) -> Array:
    """The action as `step` takes it: each coordinate of a continuous one between its bounds, `[..., D]`."""
    return action if environment.bounds is None else jnp.clip(action, *(jnp.float32(x) for x in environment.bounds))


def signed_discount(environment: Environment) -> float:
    """γ as searches and returns take it: −γ where two players alternate, whose gains are each other's losses."""
    return -environment.discount if environment.num_players == 2 else environment.discount


def all_legal(environment: Environment, state: State) -> Bool[Array, "A"]:
    """The legal mask of one state, whether the environment has one or not."""
    return jnp.ones(environment.num_actions, jnp.bool_) if environment.legal is None else environment.legal(state)


def check_environment(name: str, environment: Any) -> None:
    """Raises a ValueError if something else stands in place of an environment; `name`: of the function it was given."""
    if not isinstance(environment, Environment):
        hint = ": use environments.from_game(game)" if isinstance(environment, Game) else ""
        raise ValueError(
            f"{name}: the environment is a {type(environment).__name__}{hint}. Give an Environment, like "
            "environments.cartpole()."
        )
