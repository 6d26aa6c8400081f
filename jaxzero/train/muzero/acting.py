"""Acting as one jitted chunk: B environments in lock-step, T steps per call, each searched and recorded.

An episode that is cut by a limit has one more row: its last state is searched and recorded (`last`), no action is taken
there, and the environment is reset. So its value is known like that of any other state, and can be reanalysed.

**Openings.** An episode may begin after a random number of random actions, which are not recorded. Without them,
self-play from one position collapses onto a few lines, and a learned model does not know states that the data do not
visit.

As everywhere in training, environments are the first axis, so devices can share them, and random draws depend only on
the environment's own key.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.environments.environment import all_legal, an_action, check_environment, within_bounds
from jaxzero.options.graph_search import hash_state
from jaxzero.root.search_diagnostics import policy_improvement
from jaxzero.search.tree import Tree
from jaxzero.train.move_selection import exploring
from jaxzero.train.muzero.sequence_replay import Transition
from jaxzero.types import Keys, Params, State, in_short

__all__ = [
    "Acting",
    "ActingStats",
    "acting",
    "blank_transition",
    "by_sample",
    "legal_mask",
    "opening",
    "select",
    "summed",
]


class Acting(NamedTuple):
    """The environments between two chunks: `[B, ...]`.

    Attributes:
        state: of the environments.
        age: steps since the beginning of the episode.
        last: the state is the last one of an episode that was cut.
        paid: rewards of the episode so far; with two players those of the one who acted first.
        first: whether it is the turn of the player who acted first.
        keys: one PRNG key per environment.
    """

    state: State
    age: Int[Array, "B"]
    last: Bool[Array, "B"]
    paid: Float[Array, "B"]
    first: Bool[Array, "B"]
    keys: Keys

    __repr__ = in_short


class ActingStats(NamedTuple):
    """Sums over a chunk, one entry per device: divide by the searches, B · T; for episodes, divide by `episodes`.

    Attributes:
        steps: steps taken; the last state of an episode that was cut is searched, too, and no step is taken from it.
        episodes: episodes that ended.
        returned: their rewards; with two players those of the one who acted first.
        squared: the squares of their returns.
        length: their steps.
        first_wins: those with a positive return.
        draws: those with a return of 0.
        entropy: of the improved policies, in nats.
        improvement: KL(improved policy‖prior), in nats; 0 where it cannot be read from the policy's tree.
        distinct: the number of distinct observations.
        bad: searches with a `status`, or rewards that are not finite.
    """

    steps: Int[Array, "D"]
    episodes: Int[Array, "D"]
    returned: Float[Array, "D"]
    squared: Float[Array, "D"]
    length: Int[Array, "D"]
    first_wins: Int[Array, "D"]
    draws: Int[Array, "D"]
    entropy: Float[Array, "D"]
    improvement: Float[Array, "D"]
    distinct: Int[Array, "D"]
    bad: Int[Array, "D"]


def legal_mask(environment: Any, state: State) -> Bool[Array, "B A"]:
    """The legal actions of a batch of states, all of them where the environment names none."""
    return jax.vmap(lambda one: all_legal(environment, one))(state)


def blank_transition(environment: Any) -> Transition:
    """The shapes and types of one row of the replay."""
    state = jax.eval_shape(environment.reset, jax.eval_shape(lambda: jax.random.key(0)))
    seen = jax.eval_shape(environment.observe, state)
    shape = lambda dtype, *dims: jax.ShapeDtypeStruct(dims, dtype)
    number, flag = shape(jnp.float32), shape(jnp.bool_)
    legal = None if environment.legal is None else shape(jnp.bool_, environment.num_actions)
    policy = shape(jnp.float32, environment.num_actions)
    bounds, sampled = environment.bounds, None
    if bounds is not None:
        sampled = shape(jnp.float32, environment.num_actions, len(bounds.low))
    return Transition(seen, legal, shape(jnp.int32), number, flag, flag, flag, policy, number, sampled)


def by_sample(policy: Callable) -> Callable:
    """A policy over continuous actions, changed so that `action` is the index of the one it takes in `info.actions`."""

    def numbered(params: Params, keys: Keys, state: State, *rest: Any) -> Any:
        out = policy(params, keys, state, *rest)
        same = jnp.all(out.info.actions == out.action[:, None], tuple(range(2, out.info.actions.ndim)))
        return out.replace(action=jnp.argmax(same, -1).astype(jnp.int32))

    return numbered


def opening(environment: Any, key: chex.PRNGKey, most: int) -> State:
    """The state after 0 ... `most` uniformly random actions; one that would end the episode is not taken."""
    k_begin, k_count, k_moves = jax.random.split(key, 3)
    state = environment.reset(k_begin)
    if not most:
        return state
    count = jax.random.randint(k_count, (), 0, most + 1)

    def move(carry: tuple, key: chex.PRNGKey) -> tuple[tuple, None]:
        state, taken, going = carry
        k_action, k_step = jax.random.split(key)
        number = jax.random.categorical(k_action, jnp.where(all_legal(environment, state), 0.0, -1e9))
        after, outcome = environment.step(state, an_action(environment, number, k_action), k_step)
        going = going & (taken < count) & ~(outcome.terminated | outcome.truncated)
        return (select(going, after, state), taken + 1, going), None

    start = state, jnp.int32(0), jnp.bool_(True)
    return jax.lax.scan(move, start, jax.random.split(k_moves, most))[0][0]


def acting(
    environment: Any, policy: Callable, choose: Callable | None = None, *, steps: int, openings: int = 0
) -> tuple[Callable[..., Acting], Callable[..., tuple[Acting, Transition, ActingStats]]]:
    """Acting in an environment as two functions.

    `begin(key, environments) -> Acting` starts that many;
    `act(params, Acting) -> (Acting, transitions [B, T, ...], stats)` takes T steps in each.

    Args:
        environment: a `jaxzero.environments.Environment`.
        policy: `(params, keys, state) -> PolicyOutput`; its value is recorded.
        choose: see `jaxzero.train.move_selection.exploring`, the default; where it cuts the trace, the action counts as
            random.
        steps: T.
        openings: episodes begin after at most this many random actions.

    Raises:
        ValueError: steps < 1 or openings < 0, or something else in place of the environment.
    """
    if steps < 1 or openings < 0:
        raise ValueError(f"acting: steps={steps} must be 1 or more, and openings={openings} 0 or more.")
    check_environment("acting", environment)
    choose = exploring() if choose is None else choose
    # As many as may be needed: an episode takes at least one step.
    fresh = lambda key: jax.vmap(lambda k: opening(environment, k, openings))(jax.random.split(key, steps))

    def begin(key: chex.PRNGKey, environments: int) -> Acting:
        keys, k_begin = jax.vmap(jax.random.split, out_axes=1)(jax.random.split(key, environments))
        state = jax.vmap(lambda k: opening(environment, k, openings))(k_begin)
        none = jnp.zeros(environments, jnp.bool_)
        return Acting(state, jnp.zeros(environments, jnp.int32), none, jnp.zeros(environments), ~none, keys)

    def step(params: Params, starts: State, now: Acting, used: Array) -> tuple[tuple[Acting, Array], tuple]:
        keys, k_search, k_choose, k_step = jax.vmap(lambda k: jax.random.split(k, 4), out_axes=1)(now.keys)
        out = policy(params, k_search, now.state)
        legal = legal_mask(environment, now.state)
        action, trace = choose(k_choose, now.age, out, legal)
        sampled = None if environment.bounds is None else out.info.actions
        done = action if sampled is None else jax.vmap(lambda some, i: some[i])(sampled, action)
        after, outcome = jax.vmap(environment.step)(now.state, within_bounds(environment, done), k_step)
        reward, taken = jnp.nan_to_num(outcome.reward.astype(jnp.float32), posinf=0.0, neginf=0.0), ~now.last
        record = Transition(
            observation=jax.vmap(environment.observe)(now.state),
            legal=None if environment.legal is None else legal,
            action=action.astype(jnp.int32),
            reward=jnp.where(taken, reward, 0.0),
            terminated=outcome.terminated & taken,
            last=now.last,
            random=(trace == 0) & taken,
            policy=jnp.where(legal.any(-1, keepdims=True), out.action_weights, 0.0),  # no action, nothing to learn
            value=out.value,
            sampled=sampled,
        )
        over = record.terminated | now.last
        paid = now.paid + jnp.where(now.first, 1, -1) * record.reward
        bad = (out.info.status != 0) & (taken | legal.any(-1)) | (taken & ~jnp.isfinite(outcome.reward))
        counted = over, jnp.where(over, paid, 0.0), jnp.where(over, now.age + taken, 0), over & (paid > 0)
        told = _told(out), bad, counted, over & (paid == 0)
        start = jax.tree.map(lambda x: x[jnp.arange(len(used)), used], starts)
        turned = ~now.first if environment.num_players == 2 else now.first
        following = Acting(
            state=select(over, start, select(now.last, now.state, after)),
            age=jnp.where(over, 0, now.age + 1),
            last=outcome.truncated & ~outcome.terminated & taken,
            paid=jnp.where(over, 0.0, paid),
            first=over | turned,
            keys=keys,
        )
        return (following, used + over), (record, told)

    def act(params: Params, now: Acting) -> tuple[Acting, Transition, ActingStats]:
        keys, k_starts = jax.vmap(jax.random.split, out_axes=1)(now.keys)
        starts, used = jax.vmap(fresh)(k_starts), jnp.zeros(len(now.age), jnp.int32)
        (now, _), (record, told) = jax.lax.scan(
            lambda carry, _: step(params, starts, *carry), (now._replace(keys=keys), used), None, length=steps
        )
        record = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), record)
        return now, record, summed(record, told)

    return begin, act


def _told(out: Any) -> tuple[Array, Array]:
    """Entropy of the improved policies, and their KL divergence from the prior."""
    weights = out.action_weights
    entropy = -jnp.sum(jax.scipy.special.xlogy(weights, weights))
    if not isinstance(out.tree, Tree):
        return entropy, jnp.float32(0)
    wide = jnp.pad(weights, ((0, 0), (0, out.tree.num_edges - weights.shape[1])))  # chance may need more slots
    return entropy, policy_improvement(out.tree, wide).sum()


def summed(record: Transition, told: tuple) -> ActingStats:
    """Sums over a chunk, from the recorded steps and from what `told` adds for each step."""
    (entropy, improvement), bad, (over, paid, length, wins), draws = told
    sums = dict(
        steps=~record.last,
        episodes=over,
        returned=paid,
        squared=jnp.square(paid),
        length=length,
        first_wins=wins,
        draws=draws,
        entropy=entropy,
        improvement=improvement,
        distinct=_distinct(record.observation.reshape(-1, *record.observation.shape[2:])),
        bad=bad,
    )
    return ActingStats(**{name: jnp.sum(x)[None] for name, x in sums.items()})


def _distinct(observation: Float[Array, "n ..."]) -> Int[Array, ""]:
    """The number of distinct observations, by their 64-bit hashes."""
    high, low = jax.lax.sort(tuple(hash_state(observation).T), num_keys=2)
    return 1 + jnp.sum((high[1:] != high[:-1]) | (low[1:] != low[:-1]))


def select(mask: Array, new: Any, old: Any) -> Any:
    """The new leaves where the mask, of the leading axes, is True; else the old ones."""
    like = lambda x: mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jax.tree.map(lambda x, y: jnp.where(like(x), x, y), new, old)
