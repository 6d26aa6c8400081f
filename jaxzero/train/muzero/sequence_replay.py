"""The replay of sequences: one ring of steps per environment, and windows drawn from them.

All environments step together, so all rings have been written to equally often, and their write heads are at the same
place. A window begins where enough steps follow: it never crosses the head.

**Truncated episodes** end with one more row: their last state, which was searched like any other, but from which no
step was taken (`last`). Returns are bootstrapped from its value.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import Keys, in_short

__all__ = [
    "Sequences",
    "Starts",
    "Transition",
    "add",
    "at_times",
    "capacity",
    "cut_at_head",
    "new_sequences",
    "reprioritise",
    "sample",
    "window",
]


class Transition(NamedTuple):
    """A state, the search's results for it, and the step from it: `[E, L, ...]`, environments and time.

    Attributes:
        observation: as the environment gives it, in its own type.
        legal: the actions that may be taken; None: all.
        action: the action taken.
        reward: what it paid to the player who acted.
        terminated: the episode ended there by its rules; the next row is of another one.
        last: the last state of an episode that was cut: no step follows; the next row is of another one.
        random: the action was drawn at random, so what followed says nothing about the value of this state.
        policy: the search's improved policy.
        value: the search's value of the state, for the player to act.
        sampled: for continuous actions, those that the search has sampled: `policy` is over these, and `action` is an
            index into them; None: actions are numbers.
    """

    observation: Array
    legal: Bool[Array, "E L A"] | None
    action: Int[Array, "E L"]
    reward: Float[Array, "E L"]
    terminated: Bool[Array, "E L"]
    last: Bool[Array, "E L"]
    random: Bool[Array, "E L"]
    policy: Float[Array, "E L A"]
    value: Float[Array, "E L"]
    sampled: Float[Array, "E L A D"] | None = None


class Sequences(NamedTuple):
    """The rings.

    Attributes:
        steps: the latest L steps of each of E environments.
        priority: of each step as the beginning of a window; None: all are equal.
        written: how many steps each ring has seen; the next goes to `written % L`.
    """

    steps: Transition
    priority: Float[Array, "E L"] | None
    written: Int[Array, "E"]

    __repr__ = in_short


class Starts(NamedTuple):
    """Where windows begin: `[n]`.

    Attributes:
        ring: which environment.
        time: which step of it, counted from the first that was ever written.
        weight: the factor on the loss of the window, 1 at most.
    """

    ring: Int[Array, "n"]
    time: Int[Array, "n"]
    weight: Float[Array, "n"]


def new_sequences(step: Transition, environments: int, length: int, prioritised: bool = False) -> Sequences:
    """Empty rings for steps like `step` (arrays or shapes, without axes for environments and time).

    Args:
        step: its shapes and types.
        environments: E.
        length: L, steps in each ring.
        prioritised: whether windows are drawn by priority.

    Raises:
        ValueError: environments or length < 1.

    Example:
        One environment, whose observation at time t is t; 8 steps fit, and 12 are written, 4 at a time.

        >>> def chunk(first):
        ...     t, action = jnp.arange(first, first + 4.0)[None], jnp.zeros((1, 4), jnp.int32)
        ...     return Transition(t, None, action, t, *[action > 0] * 3, policy=jnp.full((1, 4, 2), 0.5), value=t)
        >>> rings = new_sequences(jax.tree.map(lambda x: x[0, 0], chunk(0)), environments=1, length=8)
        >>> for first in (0, 4, 8):
        ...     rings = add(rings, chunk(first))
        >>> rings.written.tolist(), rings.steps.observation.tolist()
        ([12], [[8.0, 9.0, 10.0, 11.0, 4.0, 5.0, 6.0, 7.0]])
        >>> draw = jax.jit(lambda keys: sample(rings, keys, n=100, length=6))
        >>> starts = draw(jax.random.split(jax.random.key(0), 1))
        >>> sorted(set(starts.time.tolist()))  # a window of 6 that is still there as a whole begins at one of these
        [4, 5, 6]
        >>> window(rings, rings.steps.observation, jax.tree.map(lambda x: x[:1] * 0 + 6, starts), 6).tolist()
        [[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]]
    """
    if environments < 1 or length < 1:
        raise ValueError(f"new_sequences: environments={environments}, length={length}: both must be 1 or more.")
    steps = jax.tree.map(lambda x: jnp.zeros((environments, length, *x.shape), x.dtype), step)
    priority = jnp.zeros((environments, length)) if prioritised else None
    return Sequences(steps, priority, jnp.zeros(environments, jnp.int32))


def capacity(rings: Sequences) -> int:
    """L, how many steps a ring holds."""
    return rings.steps.reward.shape[1]


def add(rings: Sequences, steps: Transition) -> Sequences:
    """Write `steps` `[E, T, ...]` over the oldest. New steps get the highest present priority, to be sampled soon.

    Raises:
        ValueError: L is no multiple of T: chunks are written as a whole, and never wrap around.
    """
    length, room = steps.reward.shape[1], capacity(rings)
    if room % length:
        below, above = room // length * length, -(-room // length) * length
        raise ValueError(
            f"add: {length} steps at a time do not divide rings of {room} steps: use rings of {below or above} or "
            f"{above} steps."
        )
    at = rings.written[0] % room
    put = lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, at, axis=1)
    chex.assert_trees_all_equal_dtypes(rings.steps, steps)
    priority = rings.priority
    if priority is not None:
        highest = jnp.where(jnp.any(priority > 0), priority.max(1, keepdims=True), 1.0)
        priority = put(priority, jnp.broadcast_to(jnp.maximum(highest, 1e-6), steps.reward.shape))
    return Sequences(jax.tree.map(put, rings.steps, steps), priority, rings.written + length)


def cut_at_head(rings: Sequences) -> Sequences:
    """The rings as if all episodes had been cut: steps written from now on do not follow the newest step.

    For environments that begin anew while their replay goes on.
    """
    at = (rings.written[0] - 1) % capacity(rings)
    newest = ~rings.steps.terminated[:, at] & (rings.written > 0)
    steps = rings.steps
    steps = steps._replace(
        last=steps.last.at[:, at].set(steps.last[:, at] | newest),
        random=steps.random.at[:, at].set(steps.random[:, at] & ~newest),
        reward=steps.reward.at[:, at].set(jnp.where(newest, 0.0, steps.reward[:, at])),
    )
    return rings._replace(steps=steps)


def sample(rings: Sequences, keys: Keys, n: int, length: int, alpha: float = 1.0, beta: float = 1.0) -> Starts:
    """Draws where `n` windows of `length` steps begin: uniformly, or by priority where there are priorities.

    By priority: P(i) ∝ p_i^α, and weights (1 / (N · P(i)))^β, divided by the greatest of the part (Schaul et al. 2016,
    "Prioritized experience replay", section 3.4; MuZero, appendix G: α = β = 1).

    Args:
        rings: each must hold `length` steps.
        keys: one per part; the rings are divided among the parts, and each part gives equally many windows.
        n: windows in all.
        length: steps of a window.
        alpha: the exponent of priorities.
        beta: the exponent of the correcting weights.

    Raises:
        ValueError: windows longer than a ring; n or E is no multiple of the parts.
    """
    parts, count, room = len(keys), len(rings.written), capacity(rings)
    if length > room:
        raise ValueError(f"sample: windows of {length} steps from rings of {room} steps: use longer rings.")
    if n % parts or count % parts:
        raise ValueError(f"sample: n={n} and {count} rings in {parts} parts: give multiples of {parts}.")
    each, written = count // parts, rings.written[0]
    oldest = jnp.maximum(written - room, 0)
    starts = jnp.maximum(written - oldest - length + 1, 1)  # per ring
    first = jnp.arange(parts)[:, None] * each
    if rings.priority is None:
        k_ring, k_time = jax.vmap(jax.random.split, out_axes=1)(keys)
        ring = jax.vmap(lambda k: jax.random.randint(k, (n // parts,), 0, each))(k_ring) + first
        age = jax.vmap(lambda k: jax.random.randint(k, (n // parts,), 0, starts))(k_time)
        return Starts(ring.reshape(-1), (oldest + age).reshape(-1), jnp.ones(n))
    time = oldest + (jnp.arange(room) - oldest) % room  # of each place in a ring
    chance = jnp.where(time < oldest + starts, rings.priority**alpha, 0.0).reshape(parts, each * room)
    place, share = jax.vmap(lambda k, p: _by_chance(k, p, n // parts))(keys, chance)
    weight = (1 / jnp.maximum(share * each * starts, 1e-9)) ** beta
    ring, at = place // room + first, time[place % room]
    weight = weight / weight.max(1, keepdims=True)
    return Starts(ring.reshape(-1), at.reshape(-1), weight.reshape(-1))


def _by_chance(key: chex.PRNGKey, chance: Float[Array, "m"], n: int) -> tuple[Int[Array, "n"], Float[Array, "n"]]:
    """Places drawn in proportion to `chance`, and the share of each."""
    up_to = jnp.cumsum(chance)
    drawn = jax.random.uniform(key, (n,)) * up_to[-1]
    place = jnp.minimum(jnp.searchsorted(up_to, drawn, side="right"), len(chance) - 1)
    place = jnp.where(chance[place] > 0, place, jnp.argmax(chance))  # rounded sums may hit one of probability 0
    return place, chance[place] / jnp.maximum(up_to[-1], 1e-30)


def window(rings: Sequences, field: Any, starts: Starts, length: int) -> Any:
    """`length` steps from each start on, `[n, length, ...]`, of one field of `rings.steps`, or of a tree of them."""
    return at_times(rings, field, starts, jnp.arange(length)[None])


def at_times(rings: Sequences, field: Any, starts: Starts, times: Int[Array, "n M"]) -> Any:
    """The steps `times` after each start, `[n, M, ...]`, of one field of `rings.steps`, or of a tree of them."""
    at = (starts.time[:, None] + times) % capacity(rings)
    return jax.tree.map(lambda x: x[starts.ring[:, None], at], field)


def reprioritise(rings: Sequences, starts: Starts, priority: Float[Array, "n"]) -> Sequences:
    """Gives new priorities to the steps that windows began with; does nothing where rings have no priorities."""
    if rings.priority is None:
        return rings
    at = starts.time % capacity(rings)
    # A start may have been drawn twice, with two errors: the greater one counts, on every device.
    blank = rings.priority.at[starts.ring, at].set(0.0)
    return rings._replace(priority=blank.at[starts.ring, at].max(jnp.maximum(priority, 1e-6)))
