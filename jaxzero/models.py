"""Models for the search: a game's rules with a network or with random playouts, or dynamics that were learned."""

import operator
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxzero import playouts
from jaxzero.games import Game
from jaxzero.games.lanes import scramble, seeds_of
from jaxzero.games.record import check_game
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["learned", "perfect", "rollout"]

Network = Callable[[Params, Float[Array, "B ..."]], tuple[Float[Array, "B A"], Float[Array, "B"] | Float[Array, "B P"]]]
Evaluate = Callable[[Params, Keys, State], tuple[Float[Array, "B A"], Float[Array, "B"] | Float[Array, "B P"]]]


def perfect(game: Game, network: Network, discount: float | Float[Array, ""] = 1.0) -> Model:
    """The game's rules, and a network that says how good a position is (AlphaZero, Silver et al. 2018).

    `Model.root` takes the game's unpacked states; the embeddings it gives the tree are packed. The value of a
    finished game is 0: its result was paid as the reward of the last step. In a game of chance an edge keeps the one
    outcome that was drawn when it was expanded; `jaxzero.chance_models` keeps several.

    Args:
        game: the rules.
        network: `(params, observation [B, ...]) -> (logits [B, A], value)`. With one or two players the value is
            `[B]`, for the player to move; with more it is `[B, P]`, entry p for player p.
        discount: γ, 1 for board games.

    Raises:
        ValueError: something else in place of the game or the network; while tracing, functions of the game that
            answer in other shapes than its record says.
        AssertionError: while tracing, when the network returns other shapes; names the field.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = perfect(game, lambda params, obs: (jnp.zeros((len(obs), 9)), jnp.zeros(len(obs))))
    >>> keys = jax.random.split(jax.random.key(0), 5)
    >>> root, embedding = model.root(None, keys, jax.vmap(game.init)(keys))
    >>> child, embedding = model.step(None, keys, jnp.zeros(5, jnp.int32), embedding)
    >>> child.legal.sum(axis=1).tolist()
    [8, 8, 8, 8, 8]
    """
    check_game("perfect", game)
    if not callable(network):
        is_pair = isinstance(network, tuple)
        pair = ": nets give a pair, net, params = nets.mlp(...), and params go to the policy" if is_pair else ""
        raise ValueError(
            f"perfect({game.id!r}, network): network is a {type(network).__name__}{pair}. Give a function (params, "
            "observation) -> (logits, value)."
        )

    def evaluate(params: Params, keys: Keys, state: State) -> tuple[Array, Array]:
        del keys
        observation = _told(game, "observe", state)
        logits, value = network(params, observation)
        _check(game, "logits", logits, "[B, A]", (len(observation), game.num_actions))
        players = (game.num_players,) if game.num_players > 2 else ()
        _check(game, "value", value, "[B, P]" if players else "[B]", (len(observation), *players))
        return logits, value

    return _with_rules(game, evaluate, discount)


def rollout(
    game: Game, rollouts: int = 1, max_steps: int | None = None, policy: playouts.RolloutPolicy | None = None
) -> Model:
    """The game's rules, and random playouts, whose mean return is the value (UCT, Kocsis & Szepesvári 2006).

    Rewards are summed undiscounted, for the player to move at the leaf, or for every player when there are more than
    two. Params are ignored. The playouts of a batch run in lock-step until the longest one ends.

    Unvisited actions are tried in random order: the logits are tiny random numbers, between 0 and 0.01, drawn anew for
    every node, and `ucb1` takes the highest first. Under `puct` they are priors uniform to 1 %.

    Args:
        game: the rules.
        rollouts: R, playouts per leaf, 1 to 65,536; all of them run at once, as a batch of B x R.
        max_steps: a playout of more actions than this, 1 to 1,000,000, counts for what it was paid so far: in
            most board games nothing, which is a draw. None: play to the end.
        policy: how playouts choose: `(state, legal [A]) -> mask or weights [A]` for one position, see
            `playouts.weighted`. None: the game's own playouts (`games.go`: light ones), or uniformly random actions
            where it has none.

    Raises:
        ValueError: something else in place of the game; rollouts or max_steps out of range; while tracing, when the
            policy returns another shape, or functions of the game answer in other shapes than its record says.

    >>> from jaxzero import games
    >>> game = games.from_pgx("connect_four")
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> step, _ = jax.jit(rollout(game, rollouts=200).root)(None, keys, jax.vmap(game.init)(keys))
    >>> bool((step.value > 0).all())  # the first player wins 56 % of random games, and loses 44 %
    True
    """
    check_game("rollout", game)
    _check_range("rollouts", rollouts, 1 << 16)
    if max_steps is not None:
        _check_range("max_steps", max_steps, 1_000_000)
    if policy is not None:
        playout = playouts.weighted(game, policy)
    else:
        playout = playouts.uniform(game) if game.playout is None else game.playout

    def evaluate(params: Params, keys: Keys, state: State) -> tuple[Array, Array]:
        del params
        batch = len(keys)
        seeds = seeds_of(keys)
        keys = jax.vmap(lambda key: jax.random.split(key, rollouts))(keys)
        keys = keys.reshape(batch * rollouts, *keys.shape[2:])  # raw keys have an axis of their own
        returns = playout(keys, jax.tree.map(lambda x: jnp.repeat(x, rollouts, axis=0), state), max_steps)
        value = returns.reshape(batch, rollouts, game.num_players).mean(axis=1)
        if game.num_players <= 2:
            value = _entry(value, _told(game, "to_play", state))
        return _random_order(seeds, game.num_actions), value

    return _with_rules(game, evaluate, discount=1.0)


def _check_range(name: str, value: int, most: int) -> None:
    if not hasattr(value, "__index__") or not 1 <= operator.index(value) <= most:
        unlimited = "; max_steps=None plays to the end" if name == "max_steps" else ""
        raise ValueError(f"rollout({name}={value!r}): use a whole number from 1 to {most:,}{unlimited}.")


def _random_order(seeds: UInt32[Array, "B"], num_actions: int) -> Float[Array, "B A"]:
    """Logits so close that they say nothing, and different, so that they make an order: 24 random bits each."""
    bits = jax.vmap(scramble, (None, 0), 1)(seeds, jnp.arange(num_actions))
    return (bits >> 8).astype(jnp.float32) * (0.01 / (1 << 24))


def learned(
    represent: Callable[[Params, Array], State],
    predict: Callable[[Params, State], tuple[Float[Array, "B A"], Float[Array, "B"]]],
    dynamics: Callable[[Params, State, Int[Array, "B"]], tuple[State, Float[Array, "B"], Float[Array, "B"]]],
    observe: Callable[[State], Array] = lambda state: state,
    legal: Callable[[State], Bool[Array, "B A"]] | None = None,
) -> Model:
    """Dynamics that were learned, as in MuZero (Schrittwieser et al. 2020, section 3): h, f and g.

    The search then knows neither the player to move nor the end of the game: the discount carries the sign
    (−γ for strict alternation, γ for one player), and actions are masked at the root only.

    Args:
        represent: h, `(params, observation) -> embedding`.
        predict: f, `(params, embedding) -> (logits, value)`, the value for the player to move.
        dynamics: g, `(params, embedding, action) -> (embedding, reward, discount)`.
        observe: `state -> observation`, batched, applied to the root's states; by default they are observations.
        legal: `state -> mask`, batched, applied to the root's states; None: every action is legal.
    """

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        del keys
        embedding = represent(params, observe(state))
        logits, value = predict(params, embedding)
        mask = None if legal is None else legal(state)
        return Step(logits, value, reward=jnp.zeros_like(value), discount=jnp.ones_like(value), legal=mask), embedding

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        del keys
        embedding, reward, discount = dynamics(params, embedding, action)
        return Step(*predict(params, embedding), reward=reward, discount=discount), embedding

    return Model(root, step)


def _with_rules(game: Game, evaluate: Evaluate, discount: float | Float[Array, ""]) -> Model:
    """The part that knows the rules: everything of a Step but the logits and the value."""

    def described(state: State, reward: Array) -> Step:
        terminal = _told(game, "terminal", state)
        return Step(
            prior_logits=jnp.zeros((len(terminal), game.num_actions)),
            value=jnp.zeros_like(reward),
            reward=reward,
            discount=jnp.where(terminal, 0.0, discount),
            legal=_told(game, "legal", state),
            terminal=terminal,
            to_play=_told(game, "to_play", state),
            truncated=None if game.truncated is None else _told(game, "truncated", state),
        )

    def evaluated(params: Params, keys: Keys, step: Step, state: State) -> Step:
        logits, value = evaluate(params, keys, state)
        over = step.terminal if value.ndim == 1 else step.terminal[:, None]
        return step._replace(prior_logits=logits, value=jnp.where(over, 0, value))

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        rewards = _told(game, "rewards", state)
        step = described(state, jnp.zeros_like(rewards if game.num_players > 2 else rewards[:, 0]))
        return evaluated(params, keys, step, state), jax.vmap(game.pack)(state)

    def move(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State, State]:
        del params
        keys = jax.vmap(jax.random.split)(keys)  # XLA removes what a deterministic game or a network does not draw
        state = jax.vmap(game.step)(embedding, action, keys[:, 0])
        reward = _told(game, "rewards", state)
        if game.num_players <= 2:
            reward = _entry(reward, _told(game, "to_play", embedding))
        return described(state, reward), state, jax.vmap(game.pack)(state)

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        step, state, packed = move(params, keys, action, embedding)
        return evaluated(params, _second(keys), step, state), packed

    return Model(root, step, move, lambda params, keys, state: evaluate(params, _second(keys), state))


def _told(game: Game, name: str, states: State) -> Array:
    """What one of the game's functions says of a batch of positions.

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


def _entry(per_player: Float[Array, "B P"], player: Int[Array, "B"]) -> Float[Array, "B"]:
    return jnp.take_along_axis(per_player, player[:, None], axis=1)[:, 0]


def _check(game: Game, field: str, array: Array, letters: str, expected: tuple[int, ...]) -> None:
    shape = jnp.shape(array)
    chex.assert_shape(
        array,
        expected,
        custom_message=(
            f"perfect({game.id!r}, network): the network returned {field} of shape {list(shape)}, "
            f"expected {letters} = {list(expected)}."
        ),
    )
