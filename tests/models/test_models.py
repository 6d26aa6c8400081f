"""Models: what they say about a position, on tic-tac-toe and on toy games small enough to work out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.models import playout_functions

GAMMA = 0.9


@pytest.fixture(scope="module")
def tic_tac_toe():
    pytest.importorskip("pgx")
    return games.from_pgx("tic_tac_toe")


def after(game, moves, keys):
    """The same moves in a game per key."""
    state = jax.vmap(game.init)(keys)
    step = jax.jit(jax.vmap(game.step, (0, None, 0)))
    for move in moves:
        state = step(state, move, keys)
    return state


def say_first_plane(params, observation):
    """A network whose answers can be told apart: logits = my stones, value = their number."""
    stones = observation[..., 0].reshape(len(observation), 9)
    return params * stones, stones.sum(axis=1)


def three_players(length=4):
    """Players 0, 1, 2 in turn; an action 0 ... 3 pays that much to the mover, and the same again to player 2."""

    def step(state, action, key):
        over = state["count"] >= length
        paid = action * (jax.nn.one_hot(state["count"] % 3, 3) + jnp.array([0.0, 0.0, 1.0]))
        return {"count": state["count"] + ~over, "paid": jnp.where(over, 0.0, paid)}

    return games.Game(
        id="three",
        num_actions=4,
        num_players=3,
        observation_shape=(1,),
        init=lambda key: {"count": jnp.int32(0), "paid": jnp.zeros(3)},
        step=step,
        observe=lambda state: state["count"][None].astype(jnp.float32),
        legal=lambda state: (jnp.arange(4) < 3) & (state["count"] < length),  # action 3 is never legal
        to_play=lambda state: state["count"] % 3,
        terminal=lambda state: state["count"] >= length,
        rewards=lambda state: state["paid"],
        pack=lambda state: state,
        symmetries=(),
    )


def one_player_with_dice():
    """One player, five steps; each pays a die from the key, whatever the action."""
    return games.Game(
        id="dice",
        num_actions=2,
        num_players=1,
        observation_shape=(1,),
        init=lambda key: {"count": jnp.int32(0), "paid": jnp.zeros(1)},
        step=lambda state, action, key: {
            "count": state["count"] + 1,
            "paid": jnp.where(state["count"] < 5, jax.random.randint(key, (1,), 1, 7), 0).astype(jnp.float32),
        },
        observe=lambda state: jnp.zeros(1),
        legal=lambda state: jnp.ones(2, bool) & (state["count"] < 5),
        to_play=lambda state: jnp.int32(0),
        terminal=lambda state: state["count"] >= 5,
        rewards=lambda state: state["paid"],
        pack=lambda state: state,
        symmetries=(),
    )


def test_perfect_fills_every_field(tic_tac_toe):
    keys = jax.random.split(jax.random.key(0), 16)
    model = models.perfect(tic_tac_toe, say_first_plane, discount=GAMMA)
    state = after(tic_tac_toe, [0, 3, 1, 4], keys)  # the player to move wins with 2
    mover = jax.vmap(tic_tac_toe.to_play)(state)
    assert set(mover.tolist()) == {0, 1}, "either player may have started"

    root, embedding = jax.jit(model.root)(2.0, keys, state)
    np.testing.assert_array_equal(root.prior_logits, jnp.tile(2.0 * jnp.array([1, 1, 0, 0, 0, 0, 0, 0, 0]), (16, 1)))
    np.testing.assert_array_equal(root.value, 2)
    np.testing.assert_array_equal(root.to_play, mover)
    np.testing.assert_array_equal(root.legal, jnp.tile(jnp.array([0, 0, 1, 0, 0, 1, 1, 1, 1], bool), (16, 1)))
    assert not root.terminal.any() and root.reward.shape == root.discount.shape == (16,)
    assert embedding.legal_action_mask is None and embedding.observation is None

    wins = jnp.arange(16) % 2 == 0
    step, embedding = jax.jit(model.step)(2.0, keys, jnp.where(wins, 2, 8), embedding)
    np.testing.assert_array_equal(step.reward, jnp.where(wins, 1, 0))
    np.testing.assert_allclose(step.discount, jnp.where(wins, 0, GAMMA))
    np.testing.assert_array_equal(step.terminal, wins)
    np.testing.assert_array_equal(step.value, jnp.where(wins, 0, 2))
    np.testing.assert_array_equal(step.legal.sum(axis=1), jnp.where(wins, 0, 4))
    np.testing.assert_array_equal(step.to_play, 1 - mover)

    again, _ = jax.jit(model.step)(2.0, keys, jnp.full(16, 5), embedding)
    np.testing.assert_array_equal(again.reward, jnp.where(wins, 0, 1))  # 5 wins for the other player, who moved now
    assert again.terminal.all() and (again.discount == 0).all()


def test_perfect_with_three_players_keeps_a_value_and_a_reward_each():
    game = three_players(length=2)
    model = models.perfect(game, lambda params, obs: (jnp.zeros((len(obs), 4)), obs + jnp.arange(3)))
    keys = jax.random.split(jax.random.key(0), 2)
    root, embedding = model.root(None, keys, jax.vmap(game.init)(keys))
    np.testing.assert_array_equal(root.value, [[0, 1, 2]] * 2)
    assert root.reward.shape == (2, 3) and root.discount.shape == (2,)
    step, embedding = model.step(None, keys, jnp.array([1, 2]), embedding)
    np.testing.assert_array_equal(step.reward, [[1, 0, 1], [2, 0, 2]])
    np.testing.assert_array_equal(step.value, [[1, 2, 3]] * 2)
    np.testing.assert_array_equal(step.to_play, [1, 1])
    step, _ = model.step(None, keys, jnp.array([1, 2]), embedding)
    np.testing.assert_array_equal(step.reward, [[0, 1, 1], [0, 2, 2]])
    np.testing.assert_array_equal(step.value, np.zeros((2, 3)))
    np.testing.assert_array_equal(step.discount, 0)


@pytest.mark.parametrize(
    "logits, value, message",
    [
        ((5, 8), (5,), r"tic_tac_toe.*logits of shape \[5, 8\], expected \[B, A\] = \[5, 9\]"),
        ((5, 9), (5, 1), r"value of shape \[5, 1\], expected \[B\] = \[5\]"),
        ((5, 9), (5, 2), r"value of shape \[5, 2\], expected \[B\] = \[5\]"),
    ],
)
def test_perfect_names_the_field_whose_shape_is_wrong(tic_tac_toe, logits, value, message):
    keys = jax.random.split(jax.random.key(0), 5)
    model = models.perfect(tic_tac_toe, lambda params, obs: (jnp.zeros(logits), jnp.zeros(value)))
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(model.root, None, keys, jax.eval_shape(jax.vmap(tic_tac_toe.init), keys))


POSITIONS = ([0, 1, 4, 2], [0, 4, 8, 2, 6], [4, 0, 2, 6, 3], [0, 1, 2, 4, 3, 5, 7], [1, 0, 3, 2, 5, 4, 8])


@pytest.mark.parametrize("moves", POSITIONS)
def test_rollout_agrees_with_enumeration(tic_tac_toe, moves, playouts=8192):
    pyspiel = pytest.importorskip("pyspiel")

    def moments(state):
        """Mean square and mean of what player 0 gets."""
        if state.is_terminal():
            return np.array([state.returns()[0] ** 2, state.returns()[0]])
        return np.mean([moments(state.child(action)) for action in state.legal_actions()], axis=0)

    state = pyspiel.load_game("tic_tac_toe").new_initial_state()
    for move in moves:
        state.apply_action(move)
    square, mean = moments(state)
    sign = 1 if state.current_player() == 0 else -1

    keys = jax.random.split(jax.random.key(len(moves)), 2)
    step, _ = jax.jit(models.rollout(tic_tac_toe, playouts).root)(None, keys, after(tic_tac_toe, moves, keys))
    error = np.sqrt((square - mean**2) / playouts)
    np.testing.assert_allclose(step.value, sign * mean, atol=4.5 * error + 1e-6)
    assert (0 <= step.prior_logits).all() and (step.prior_logits < 0.01).all()


@pytest.mark.slow
def test_unvisited_actions_are_tried_in_random_order(tic_tac_toe, batch=1800):
    """First at the root, then below: every action equally often first, and the orders of nodes differ."""
    keys = jax.random.split(jax.random.key(0), batch)
    model, states = models.rollout(tic_tac_toe), jax.vmap(tic_tac_toe.init)(keys)
    first = jax.jit(jz.uct(model, 1))((), keys, states).action
    np.testing.assert_allclose(np.bincount(first, minlength=9), batch / 9, atol=5 * np.sqrt(batch / 9))
    visits = jax.jit(jz.uct(model, 9))((), keys[:20], states_of(states, 20)).info.summary.visits
    np.testing.assert_array_equal(visits, 1)
    _, embedding = model.root(None, keys[:20], states_of(states, 20))
    orders = [model.step(None, keys[:20], jnp.full(20, a), embedding)[0].prior_logits for a in (0, 1)]
    root = model.root(None, keys[:20], states_of(states, 20))[0].prior_logits
    assert len(np.unique(np.argsort(np.concatenate([root, *orders]), axis=1), axis=0)) > 30
    assert len(np.unique(root)) == root.size, "no two are alike: the lowest index would come first"


def states_of(states, count):
    return jax.tree.map(lambda x: x[:count], states)


def test_rollout_values_of_a_game_do_not_depend_on_the_batch(tic_tac_toe):
    keys = jax.random.split(jax.random.key(3), 5)
    model = models.rollout(tic_tac_toe, rollouts=7)
    _, embedding = jax.jit(model.root)(None, keys, after(tic_tac_toe, [4], keys))
    actions = jnp.array([0, 1, 2, 3, 5])
    together = jax.jit(model.step)(None, keys, actions, embedding)[0].value
    assert len(np.unique(together)) > 1
    for i in range(5):
        one = slice(i, i + 1)
        alone = jax.jit(model.step)(None, keys[one], actions[one], jax.tree.map(lambda x: x[one], embedding))[0]
        np.testing.assert_array_equal(alone.value, together[one])
    other = jax.jit(model.step)(None, jax.random.split(jax.random.key(4), 5), actions, embedding)[0].value
    assert (other != together).any()


def test_rollout_of_a_finished_game_is_worth_nothing_more(tic_tac_toe):
    keys = jax.random.split(jax.random.key(0), 2)
    step, _ = jax.jit(models.rollout(tic_tac_toe, 4).root)(None, keys, after(tic_tac_toe, [0, 3, 1, 4, 2], keys))
    np.testing.assert_array_equal(step.value, 0)
    assert step.terminal.all()


def test_rollout_stops_at_max_steps(tic_tac_toe):
    keys = jax.random.split(jax.random.key(0), 3)
    state = after(tic_tac_toe, [], keys)
    value = lambda max_steps: jax.jit(models.rollout(tic_tac_toe, 32, max_steps).root)(None, keys, state)[0].value
    assert (value(4) == 0).all()
    assert (value(9) != 0).any()


def test_rollout_pays_every_one_of_three_players_and_takes_legal_actions_only():
    game, keys = three_players(length=4), jax.random.split(jax.random.key(0), 2)
    step, _ = jax.jit(models.rollout(game, 20_000).root)(None, keys, jax.vmap(game.init)(keys))
    # Movers 0, 1, 2, 0, a mean of 1 each over the legal 0, 1, 2; player 2 gets every payment once more.
    np.testing.assert_allclose(step.value, [[2, 1, 5]] * 2, atol=0.06)


def test_rollout_draws_the_dice_of_one_player_anew():
    game, keys = one_player_with_dice(), jax.random.split(jax.random.key(0), 3)
    one = jax.jit(models.rollout(game).root)(None, keys, jax.vmap(game.init)(keys))[0]
    assert one.value.shape == (3,) and len(np.unique(one.value)) > 1
    many = jax.jit(models.rollout(game, 10_000).root)(None, keys, jax.vmap(game.init)(keys))[0]
    np.testing.assert_allclose(many.value, 17.5, atol=0.2)


def test_a_uniformly_random_legal_action_is_uniform_and_legal():
    bits = jax.vmap(jax.random.bits)(jax.random.split(jax.random.key(0), 30_000))
    legal = jnp.array([False, True, False, True, True, False])
    count = np.bincount(playout_functions.random_legal(jnp.tile(legal, (len(bits), 1)), bits), minlength=6)
    assert (count[~legal] == 0).all()
    np.testing.assert_allclose(count[legal], 10_000, atol=4 * np.sqrt(30_000 * 2 / 9))
    nothing = playout_functions.random_legal(jnp.zeros((4, 6), bool), bits[:4])
    assert ((0 <= nothing) & (nothing < 6)).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"rollouts": 0}, r"rollouts=0\): use a whole number from 1 to 65,536\."),
        ({"rollouts": 65_537}, r"rollouts=65537.*from 1 to 65,536"),
        ({"rollouts": 2.0}, r"rollouts=2.0.*from 1 to 65,536"),
        ({"rollouts": 4, "max_steps": 0}, "max_steps=0.*from 1 to 1,000,000; max_steps=None plays to the end"),
        ({"max_steps": 1_000_001}, "max_steps=1000001.*from 1 to 1,000,000"),
    ],
)
def test_rollout_says_what_is_in_range(wrong, message):
    with pytest.raises(ValueError, match=message):
        models.rollout(three_players(), **wrong)


def value_with(policy, game=None, playouts_per_leaf=4000):
    game, keys = game or three_players(length=3), jax.random.split(jax.random.key(0), 2)
    model = models.rollout(game, playouts_per_leaf, policy=policy)
    return jax.jit(model.root)(None, keys, jax.vmap(game.init)(keys))[0].value


def test_a_rollout_policy_masks():
    """Movers 0, 1, 2 are paid what they take; player 2 is paid everything once more."""
    only_two = lambda state, legal: jnp.arange(4) == 2
    np.testing.assert_array_equal(value_with(only_two, playouts_per_leaf=3), [[2, 2, 8]] * 2)
    low = lambda state, legal: jnp.arange(4) < 2
    np.testing.assert_allclose(value_with(low), [[0.5, 0.5, 2]] * 2, atol=0.07)


def test_a_rollout_policy_weighs():
    weights = lambda state, legal: jnp.array([1.0, 0.0, 3.0, 1e9])  # the last is never legal
    np.testing.assert_allclose(value_with(weights), [[1.5, 1.5, 6]] * 2, atol=0.12)
    integers = lambda state, legal: jnp.array([1, 0, 3, 7])
    np.testing.assert_allclose(value_with(integers), [[1.5, 1.5, 6]] * 2, atol=0.12)


@pytest.mark.parametrize("nothing", [False, 0.0, -1.0, jnp.nan])
def test_a_rollout_policy_that_leaves_nothing_is_passed_over(nothing):
    value = value_with(lambda state, legal: jnp.full(4, nothing))
    np.testing.assert_allclose(value, [[1, 1, 4]] * 2, atol=0.12)


def test_a_rollout_policy_sees_the_state():
    first_then_last = lambda state, legal: jnp.arange(4) == jnp.where(state["count"] == 0, 2, 0)
    np.testing.assert_array_equal(value_with(first_then_last, playouts_per_leaf=2), [[2, 0, 2]] * 2)


def test_a_rollout_policy_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"returned shape \(3,\) for a position of three.*\[A\] = \[4\]"):
        value_with(lambda state, legal: legal[:3])


def test_learned_follows_its_three_functions():
    model = models.learned(
        represent=lambda params, observation: params * observation,
        predict=lambda params, embedding: (embedding[:, :2], embedding.sum(axis=1)),
        dynamics=lambda params, embedding, action: (embedding + action[:, None], embedding[:, 0], -jnp.ones(2)),
        observe=lambda state: state["board"],
        legal=lambda state: state["legal"],
    )
    state = {"board": jnp.arange(6.0).reshape(2, 3), "legal": jnp.array([[True, False], [True, True]])}
    keys = jax.random.split(jax.random.key(0), 2)
    root, embedding = model.root(10.0, keys, state)
    np.testing.assert_array_equal(root.value, [30, 120])
    np.testing.assert_array_equal(root.legal, state["legal"])
    step, embedding = model.step(10.0, keys, jnp.array([0, 1]), embedding)
    np.testing.assert_array_equal(step.reward, [0, 30])
    np.testing.assert_array_equal(step.prior_logits, [[0, 10], [31, 41]])
    np.testing.assert_array_equal(step.discount, -1)
    assert step.legal is None and step.terminal is None and step.to_play is None


def nim():
    """Two heaps; who takes the last match wins. A move that takes more than there is leaves less than 0, for ever."""

    def init(key):
        return jnp.array([3, 4]), jnp.int32(0), jnp.zeros(2)

    def legal(state):
        return (jnp.arange(1, 5) <= state[0][:, None]).reshape(-1)

    def step(state, action, key):
        heaps, player, _ = state
        over, left = (heaps == 0).all(), heaps.at[action // 4].add(-(action % 4 + 1))
        pays = jnp.where(jnp.arange(2) == player, 1.0, -1.0) * (left == 0).all()
        return jnp.where(over, heaps, left), 1 - player, jnp.where(over, 0, pays)

    return games.Game(
        id="nim",
        num_actions=8,
        num_players=2,
        observation_shape=(2,),
        init=init,
        step=step,
        observe=lambda state: state[0].astype(jnp.float32),
        legal=legal,
        to_play=lambda state: state[1],
        terminal=lambda state: (state[0] == 0).all(),
        rewards=lambda state: state[2],
        pack=lambda state: state,
        symmetries=(games.Symmetry(lambda x: x, tuple(range(8))),),
    )


STANDING_BY = {
    "stop": lambda: dict(stop=jz.options.total_visits(jnp.arange(6) % 5 + 1)),
    "solver": lambda: dict(rule=jz.avoid_proven(jz.puct()), stop=jz.solved),
    "graph": lambda: dict(rule=jz.options.seek_proof(jz.puct()), stop=jz.solved, simulate=jz.transpositions()),
    "lanes": lambda: dict(stop=jz.options.total_visits(jnp.arange(6) % 5 + 1), simulate=jz.parallel(4)),
    "free walks": lambda: dict(rule=jz.avoid_proven(jz.puct()), simulate=jz.parallel(2, free_walks=2)),
}
DEAD_ENDS = {
    "plain": lambda: {},
    "graph": lambda: dict(simulate=jz.transpositions()),
    "lanes": lambda: dict(simulate=jz.parallel(4)),
}
CASES = [(name, False) for name in STANDING_BY] + [(name, True) for name in DEAD_ENDS]
FAST = [("solver", False), ("plain", True)]


@pytest.mark.parametrize(
    "name, dead_ends", [pytest.param(*x, marks=[pytest.mark.slow] * (x not in FAST)) for x in CASES]
)
def test_a_model_is_asked_of_legal_moves_only(name, dead_ends):
    """A move that is none can lead anywhere in a game of somebody's own; a playout from there might never end."""
    game, asked = nim(), []
    if dead_ends:  # a game that does not say when it is over: somewhere there is just no move
        game = game._replace(terminal=lambda state: jnp.bool_(False))
    options = (DEAD_ENDS if dead_ends else STANDING_BY)[name]()
    model = models.perfect(game, lambda params, seen: (jnp.zeros((len(seen), 8)), jnp.zeros(len(seen))))

    def seen(half):
        def ask(params, keys, action, state):
            legal = jnp.take_along_axis(jax.vmap(game.legal)(state), action[:, None], 1)[:, 0]
            jax.debug.callback(asked.append, legal | jax.vmap(game.terminal)(state))
            return half(params, keys, action, state)

        return ask

    model = model._replace(step=seen(model.step), move=seen(model.move))
    heaps = jnp.array([[3, 4], [1, 0], [0, 2], [0, 1], [2, 2], [0, dead_ends]])
    states = heaps, jnp.zeros(6, jnp.int32), jnp.zeros((6, 2))
    policy = jz.alphazero(model, 40, dirichlet_fraction=0.0, **options)
    jax.block_until_ready(jax.jit(policy)((), jax.random.key(0), states))
    jax.effects_barrier()
    assert len(asked) > 1 and all(np.asarray(legal).all() for legal in asked)


def test_a_playout_ends_where_nothing_is_legal():
    keys = jax.random.split(jax.random.key(0), 2)
    states = jnp.array([[-1, 0], [2, 1]]), jnp.zeros(2, jnp.int32), jnp.zeros((2, 2))
    paid = jax.jit(playout_functions.uniform(nim()))(keys, states)
    assert paid[0].tolist() == [0, 0] and abs(float(paid[1, 0])) == 1


def test_what_is_done_to_a_playout_without_moves_does_not_count():
    """Here an illegal move ends the game and the mover pays, as in many games; no lane may ever be made to."""
    game = nim()

    def step(state, action, key):
        after, bad = game.step(state, action, key), ~game.legal(state)[action]
        punished = jnp.where(jnp.arange(2) == state[1], -1.0, 1.0)
        return after[0], after[1], jnp.where(bad, punished, after[2])

    keys = jax.random.split(jax.random.key(0), 2)
    states = jnp.array([[-1, 0], [3, 4]]), jnp.zeros(2, jnp.int32), jnp.zeros((2, 2))
    together = jax.jit(playout_functions.uniform(game._replace(step=step)))(keys, states)
    assert together[0].tolist() == [0, 0] and abs(float(together[1, 0])) == 1


@pytest.mark.parametrize(
    "name, given, said, wanted",
    [
        ("rewards", jnp.float32(0), r"float32 and shape \(\)", r"num_players=2.* floating and shape \(2,\)"),
        ("legal", jnp.ones(4, bool), r"bool and shape \(4,\)", r"num_actions=8.* bool and shape \(8,\)"),
        ("legal", jnp.ones(8), r"float32 and shape \(8,\)", r"bool and shape \(8,\)"),
        ("to_play", jnp.float32(0), r"float32 and shape \(\)", r"integer and shape \(\)"),
        ("terminal", jnp.zeros(2, bool), r"bool and shape \(2,\)", r"bool and shape \(\)"),
        ("truncated", jnp.int32(0), r"int32 and shape \(\)", r"bool and shape \(\)"),
        ("observe", jnp.zeros(3), r"float32 and shape \(3,\)", r"observation_shape=.* must be one of shape \(2,\)"),
    ],
)
def test_a_game_that_answers_otherwise_than_its_record_says_is_named(name, given, said, wanted):
    game = nim()
    pair = game._replace(**{name: lambda state: (given, given)})
    wrong, keys = game._replace(**{name: lambda state: given}), jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(game.init)(keys)
    made = [models.perfect(wrong, lambda params, seen: (jnp.zeros((2, 8)), jnp.zeros(2)))]
    made += [models.rollout(wrong)] if name != "observe" else []  # playouts look at nothing
    for model in made:
        with pytest.raises(
            ValueError, match=rf"the game 'nim': {name}\(state\) gives an array of type {said}; .*{wanted}"
        ):
            jax.eval_shape(model.root, None, keys, states)
    with pytest.raises(ValueError, match=rf"'nim': {name}\(state\) gives a tuple: give one array"):
        jax.eval_shape(models.perfect(pair, lambda params, seen: None).root, None, keys, states)


def test_a_network_that_returns_no_pair_is_told():
    game = games.from_pgx("tic_tac_toe")
    model, keys = models.perfect(game, lambda params, observation: {"logits": observation}), jax.random.key(0)[None]
    with pytest.raises(ValueError, match="network returned a dict.*pair"):
        jax.eval_shape(lambda: model.root((), keys, jax.vmap(game.init)(keys)))
