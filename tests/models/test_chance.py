"""Models of games of chance: against best play solved by hand, and on pgx's games."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games
from jaxzero.models import perfect, rollout
from jaxzero.models.chance import Outcomes, by_keys, for_actions, sampled, with_outcomes
from jaxzero.search.node_storage import unpack_facts
from tests.race import know_nothing, race, solve


def states(game, batch: int):
    return jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))


def searched(model, game, simulations: int, kind: str = "puct", batch: int = 2):
    if kind == "gumbel":
        policy = jz.gumbel(model, simulations, gumbel_scale=0.0)
    else:
        rule = jz.ucb1(0.7) if kind == "ucb1" else jz.puct(3.0)
        policy = jz.alphazero(model, simulations, rule=rule, dirichlet_fraction=0.0, act=jz.most_visited)
    keys = jax.random.split(jax.random.key(1), batch)
    return jax.device_get(jax.jit(policy)(None, keys, states(game, batch)))


# --- best play -------------------------------------------------------------------------------------------------------

RACES = {
    "two": ((0, 1, 0), 2, 1.0),
    "twice": ((0, 0, 1), 2, 1.0),
    "three": ((0, 1), 3, 1.0),
    "three_twice": ((2, 2), 3, 1.0),
    "alone": ((0, 0), 1, 0.9),
}


def check_race(name: str, kind: str, simulations: int, off: float) -> None:
    order, players, discount = RACES[name]
    game, outcomes = race(order, players)
    values, mine = solve(order, players, discount)
    assert np.diff(np.sort(mine))[-1] > 0.04, "best play is to be told from the second best"
    model = with_outcomes(know_nothing(game, discount), game, outcomes, discount)
    out = searched(model, game, simulations, kind)
    best = int(np.argmax(mine))
    assert (out.action == best).all() and (out.info.status == 0).all()
    if kind != "gumbel":  # below the root it plays by its improved policy, not by the best action only
        np.testing.assert_allclose(out.info.summary.qvalues[:, best], mine[best], atol=off)
    if players > 2:
        np.testing.assert_allclose(
            out.value, values[[best, best]], atol=3 * off
        )  # a mean that explored, for every player


@pytest.mark.parametrize(
    "name", ["three_twice", *(pytest.param(x, marks=pytest.mark.slow) for x in ("twice", "alone"))]
)
def test_best_play_is_found(name):
    check_race(name, "puct", 2500, off=0.06)


def test_gumbel_finds_it_too():
    check_race("two", "gumbel", 600, off=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name, kind", [("two", "puct"), ("three", "puct"), ("twice", "ucb1"), ("three_twice", "ucb1")])
def test_best_play_is_found_by_other_rules(name, kind):
    check_race(name, kind, 8000, off=0.06)


@pytest.mark.slow
def test_more_samples_come_nearer_to_the_probabilities():
    """The error of sampled outcomes stays however long the search, and shrinks with their number like 1/√C."""
    game, _ = race((0,), 1)
    keys, mine = jax.random.split(jax.random.key(3), 300), solve((0,), 1)[1]
    spread = []
    for count in (3, 27):
        model = with_outcomes(know_nothing(game), game, sampled(game, count))
        policy = jz.alphazero(model, 4 * count + 40, rule=jz.puct(3.0), dirichlet_fraction=0.0, act=jz.most_visited)
        out = jax.jit(policy)(None, keys, states(game, 300))
        seen = out.info.summary.visits[:, 1] > 10  # the even way, whose chances the first ply leaves as they are
        error = np.asarray(out.info.summary.qvalues[:, 1] - mine[1])[np.asarray(seen)]
        spread.append(error.std())
        assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(error)) + 0.01, "no side is favoured"
    assert 2.4 < spread[0] / spread[1] < 3.6, "nine times as many: a third of the error"


# --- what the model says ---------------------------------------------------------------------------------------------


def test_every_field_of_a_chance_node_and_of_what_follows():
    order, players, gamma = (0, 1, 1), 2, 0.9
    game, outcomes = race(order, players)
    guess = perfect(game, lambda params, x: (jnp.arange(3.0) + 0 * x[:, :1], x[:, 0] / 8), gamma)
    model = with_outcomes(guess, game, outcomes, gamma)
    keys = jax.random.split(jax.random.key(0), 6)
    root, at = model.root(None, keys, states(game, 6))
    assert not root.chance.any() and root.legal.tolist() == [[True] * 3 + [False]] * 6
    wait, at = jax.jit(model.step)(None, keys, jnp.array([0, 0, 1, 1, 2, 2]), at)
    assert wait.chance.tolist() == [False, False, True, True, True, True], "the sure way leaves nothing to chance"
    np.testing.assert_array_equal(wait.to_play, [1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(wait.discount, np.float32([0.9, 0.9, 1, 1, 1, 1]))
    np.testing.assert_allclose(jnp.exp(wait.prior_logits[4]), [0.2, 0.3, 0.35, 0.15], rtol=1e-5)
    # The guess is one of the outcomes' worth to the mover, who sees the opponent's value from the other side.
    gains = np.array([[0.0, 1.2, 2.3, 3.4], [-2.0, 0.4, 3.1, 5.2]])
    for game_index, row in ((2, 0), (3, 0), (4, 1), (5, 1)):
        assert np.isclose(wait.value[game_index], -gamma * gains[row] / 8, atol=1e-6).any()
    go, at = jax.jit(model.step)(None, keys, jnp.array([0, 0, 3, 2, 0, 1]), at)
    assert go.chance.tolist() == [False] * 6 and go.to_play.tolist() == [1] * 6
    np.testing.assert_allclose(go.value[2:], np.array([3.4, 2.3, -2.0, 0.4]) / 8, rtol=1e-5)
    np.testing.assert_allclose(go.discount, gamma, rtol=1e-6)
    np.testing.assert_array_equal(go.prior_logits[2], [0, 1, 2, 0])


def test_guesses_are_unbiased():
    game, outcomes = race((0,), 1)
    model = with_outcomes(know_nothing(game), game, outcomes)
    keys = jax.random.split(jax.random.key(5), 4000)
    _, at = model.root(None, keys, states(game, 4000))
    step, _ = jax.jit(model.step)(None, keys, jnp.full(4000, 2), at)
    expected, spread = solve((0,), 1)[1][2], float(step.value.std())
    assert spread > 0.1 and abs(float(step.value.mean()) - expected) < 4 * spread / np.sqrt(4000)


def test_a_sampled_outcome_is_the_same_whenever_it_is_asked_for():
    game, _ = race((0, 1, 0), 2)
    model = with_outcomes(know_nothing(game), game, sampled(game, 8))
    keys = jax.random.split(jax.random.key(0), 16)
    _, at = model.root(None, keys, states(game, 16))
    step = jax.jit(model.step)
    wait, at = step(None, keys, jnp.full(16, 2), at)
    assert wait.chance.all() and wait.legal.all()
    later = jax.random.split(jax.random.key(9), 16)
    one, other = (step(None, k, jnp.full(16, 3), at)[1].state.score for k in (keys, later))
    np.testing.assert_array_equal(one, other)
    scores = np.stack([step(None, later, jnp.full(16, i), at)[1].state.score for i in range(8)])
    assert len(np.unique(scores[:, :, 0])) == 4, "every gain occurs"
    assert (scores[:1] != scores[1:]).any((0, 2)).all(), "the outcomes of a chance node are draws of their own"
    assert (scores[:, :1] != scores[:, 1:2]).any(), "each game draws its own"


def test_raw_keys_do_as_well():
    game, _ = race((0, 1), 2)
    model = with_outcomes(know_nothing(game), game, sampled(game, 4))
    typed = jax.random.split(jax.random.key(0), 3)
    _, at = model.root(None, typed, states(game, 3))
    raw, typed = ((model.step(None, k, jnp.full(3, 2), at)) for k in (jax.random.key_data(typed), typed))
    np.testing.assert_array_equal(raw[1].key, typed[1].key)
    np.testing.assert_array_equal(raw[0].value, typed[0].value)


@pytest.mark.slow
def test_a_game_alone_is_the_game_in_a_batch():
    game, _ = race((0, 1, 0), 2)
    policy = jax.jit(jz.alphazero(with_outcomes(know_nothing(game), game, sampled(game, 5)), 60))
    keys, start = jax.random.split(jax.random.key(2), 3), states(game, 3)
    out, alone = policy(None, keys, start), policy(None, keys[1:2], jax.tree.map(lambda x: x[1:2], start))
    np.testing.assert_array_equal(alone.tree.visits[0], out.tree.visits[1])
    np.testing.assert_array_equal(alone.action[0], out.action[1])


def test_a_step_without_chance_makes_no_chance_node():
    game, _ = race((0, 1, 0), 2)
    never = with_outcomes(know_nothing(game), game, sampled(game, 4, lambda *_: jnp.bool_(False)))
    out = searched(never, game, 30)
    assert not unpack_facts(out.tree.facts).chance.any()
    assert out.tree.visits[0, 0] == 31


def test_an_end_by_a_limit_proves_nothing():
    game = games.from_pgx("tic_tac_toe")
    cut = game._replace(terminal=lambda state: state._step_count >= 1, truncated=lambda state: state._step_count >= 1)
    outcomes = Outcomes(2, lambda s, a: jnp.array([1.0, 0.0]), lambda s, a, o, k: game.step(s, a, k))
    model = with_outcomes(
        perfect(cut, lambda p, seen: (jnp.zeros((len(seen), 9)), jnp.zeros(len(seen)))), cut, outcomes
    )
    policy = jz.alphazero(model, 12, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0)
    out = jax.jit(policy)((), jax.random.key(0), states(cut, 2))
    assert jz.options.bounds(out.tree).tolist() == [[-1, 1]] * 2


def test_a_graph_merges_positions_that_dice_lead_to():
    """The sum of what was thrown is all that counts, so positions meet again; only chance nodes store a key."""

    def outcome(state, action, outcome, key):
        return state[0] + action + outcome, state[1] + 1

    game = games.Game(
        id="sums",
        num_actions=2,
        num_players=1,
        observation_shape=(1,),
        init=lambda key: (jnp.int32(0), jnp.int32(0)),
        step=lambda state, action, key: outcome(state, action, 0, key),
        observe=lambda state: state[0][None] * 1.0,
        legal=lambda state: jnp.full(2, state[1] < 5),
        to_play=lambda state: jnp.int32(0),
        terminal=lambda state: state[1] >= 5,
        rewards=lambda state: jnp.zeros(1),
    )
    coin = Outcomes(2, lambda state, action: jnp.full(2, 0.5), outcome)
    guess = perfect(game, lambda params, seen: (jnp.zeros((len(seen), 2)), jnp.zeros(len(seen))))
    model = with_outcomes(guess, game, coin)
    keys = jax.random.split(jax.random.key(0), 1)
    policy = jz.alphazero(model, 100, dirichlet_fraction=0.0, simulate=jz.transpositions())
    out = jax.jit(policy)((), keys, jax.vmap(game.init)(keys))
    stored = jax.tree.map(lambda x: np.asarray(x[0, :-1]), out.tree.state)
    visited = np.asarray(out.tree.visits[0]) > 0
    decisions = visited & ~stored.chance
    assert (stored.key[decisions] == 0).all() and (stored.key[visited & stored.chance] != 0).any()
    assert jz.options.num_positions(out.tree)[0] < 0.7 * visited.sum()
    node = np.asarray(out.tree.graph.node[0, :-1])
    numbers = list(zip(stored.state[0].tolist(), stored.state[1].tolist()))
    assert len({node[i] for i in np.flatnonzero(decisions)}) == len({numbers[i] for i in np.flatnonzero(decisions)})


def test_actions_where_nothing_is_legal():
    def say(count):
        zeros, none = jnp.zeros(count), jnp.zeros((count, 6), bool)
        return jz.Step(jnp.zeros((count, 6)), zeros, zeros, zeros + 1, legal=none, chance=zeros > 0), zeros

    model = jz.Model(lambda params, keys, state: say(len(state)), lambda params, keys, action, state: say(len(state)))
    for policy, width in ((jz.alphazero(model, 4), 6), (for_actions(jz.alphazero(model, 4), 3), 3)):
        out = jax.jit(policy)((), jax.random.key(1), jnp.zeros(20))
        assert (out.action == 0).all() and (out.info.status == jz.Status.NO_LEGAL_ACTION).all()
        np.testing.assert_allclose(out.action_weights, np.full((20, width), 1 / width), rtol=1e-6)


@pytest.mark.slow
def test_rollouts_value_positions_too():
    game, outcomes = race((0, 1), 2)
    model = with_outcomes(rollout(game, rollouts=4), game, outcomes)
    out = searched(model, game, 1200, "ucb1")
    assert (out.action == np.argmax(solve((0, 1), 2)[1])).all()


def test_outcomes_that_do_not_fit_are_named():
    game, outcomes = race((0, 1), 2)
    with pytest.raises(ValueError, match=r"outcomes=<function sampled.*: give Outcomes, like sampled\(game, 16\)"):
        with_outcomes(know_nothing(game), game, sampled)
    with pytest.raises(ValueError, match=r"with_outcomes: the game is a Model: give a Game"):
        with_outcomes(game, know_nothing(game), outcomes)
    model = with_outcomes(know_nothing(game), game, outcomes._replace(count=3))
    with pytest.raises(ValueError, match=r"probabilities returned shape \(4,\); to match its count it must be \(3,\)"):
        searched(model, game, 4)
    policy = for_actions(jz.alphazero(with_outcomes(know_nothing(game), game, outcomes), 4), 9)
    with pytest.raises(ValueError, match=r"for_actions\(policy, 9\): its trees have only 4 slots"):
        jax.eval_shape(policy, None, jax.random.key(0), jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2)))


@pytest.mark.parametrize("count", [1, 0])
def test_one_sample_is_no_chance_node(count):
    with pytest.raises(ValueError, match=rf"sampled\(count={count}\): a chance node needs two outcomes or more"):
        sampled(race((0,), 1)[0], count)


@pytest.mark.parametrize("number, shape", [(1, (1,)), (3, (2,)), (3, ())])
def test_every_key_has_a_probability(number, shape):
    keys = jax.random.split(jax.random.key(0), number)
    with pytest.raises(ValueError, match=rf"by_keys with {number} keys.*one probability for each, \[{number}\]"):
        by_keys(race((0,), 1)[0], keys, jnp.ones(shape))


def test_keys_bring_about_the_outcomes():
    """The four gains of the even way, by keys found for them: best play comes out as with the outcomes themselves."""
    game, outcomes = race((0, 1), 2)
    keys = jax.random.split(jax.random.key(0), 200)
    state = game.init(keys[0])
    gains = jax.vmap(lambda key: game.step(state, 1, key).score[0])(keys)
    found = np.unique(gains, return_index=True)[1]
    listed = by_keys(game, keys[found], jnp.full(4, 0.25))
    for outcome in range(4):
        ours, theirs = (o.step(state, 1, outcome, keys[0]).score for o in (listed, outcomes))
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_allclose(listed.probabilities(state, 1), outcomes.probabilities(state, 1))


# --- pgx -------------------------------------------------------------------------------------------------------------


@functools.cache
def of_pgx(env_id: str, count: int):
    pytest.importorskip("pgx")
    game = games.from_pgx(env_id)

    def network(params, x):
        flat = x.reshape(len(x), -1)
        return flat[:, :1] * jnp.sin(jnp.arange(game.num_actions)), jnp.tanh(flat.mean(-1))

    turn_passes = lambda state, action, following: game.to_play(state) != game.to_play(following)
    happens = turn_passes if env_id == "backgammon" else None
    return game, with_outcomes(perfect(game, network), game, sampled(game, count, happens))


@pytest.mark.parametrize(
    "env_id, count, kind",
    [
        pytest.param("2048", 6, "gumbel", marks=pytest.mark.slow),
        pytest.param("2048", 6, "puct", marks=pytest.mark.slow),
        pytest.param("backgammon", 12, "puct", marks=pytest.mark.slow),
        pytest.param("backgammon", 12, "gumbel", marks=pytest.mark.slow),
    ],
)
def test_pgx_games_of_chance(env_id, count, kind, simulations=24, batch=3):
    game, model = of_pgx(env_id, count)
    policy = jz.alphazero(model, simulations) if kind == "puct" else jz.gumbel(model, simulations)
    policy = jax.jit(for_actions(policy, game.num_actions))
    keys, start = jax.random.split(jax.random.key(2), batch), states(game, batch)
    out = policy(None, keys, start)
    legal = np.asarray(jax.vmap(game.legal)(start))
    assert (out.info.status == 0).all() and legal[np.arange(batch), out.action].all()
    assert out.tree.num_edges == max(game.num_actions, count)
    for of_actions in (out.action_weights, out.info.summary.visits, out.info.summary.qvalues):
        assert of_actions.shape == (batch, game.num_actions) and (np.asarray(of_actions)[~legal] == 0).all()
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, rtol=1e-5)
    facts = unpack_facts(out.tree.facts[:, :-1])
    assert facts.chance.any() and (~facts.chance[:, 1:] & (out.tree.visits[:, 1:] > 0)).any()


@pytest.mark.slow
def test_in_2048_outcomes_are_tiles_put_after_the_move():
    game, model = of_pgx("2048", 6)
    keys, start = jax.random.split(jax.random.key(2), 4), states(game, 4)
    action = jnp.argmax(jax.vmap(game.legal)(start), -1)
    step = jax.jit(model.step)
    _, at = jax.jit(model.root)(None, keys, start)
    wait, at = step(None, keys, action, at)
    boards = np.stack([step(None, keys, jnp.full(4, i), at)[1].state._board for i in range(6)])
    assert wait.chance.all() and (boards[:1] != boards[1:]).any()
    tiles = (boards > 0).sum(-1)
    assert (tiles == tiles[:1]).all(), "the move is the same, one tile is added to it"


@pytest.mark.slow
def test_the_dice_of_backgammon_can_be_listed():
    pytest.importorskip("pgx")
    game, keys = games.from_pgx("backgammon"), jax.random.split(jax.random.key(0), 500)
    roll = jax.vmap(lambda key: jnp.sort(jax.random.randint(key, (1, 2), 0, 6)[0]))
    rolls, found = np.unique(roll(keys), axis=0, return_index=True)
    weights = jnp.where(rolls[:, 0] == rolls[:, 1], 1 / 36, 2 / 36)
    passes = lambda state, action, following: game.to_play(state) != game.to_play(following)
    dice = by_keys(game, keys[found], weights, passes)

    def half_a_turn(state, key):
        return game.step(state, jnp.argmax(game.legal(state)), key)

    state = jax.jit(lambda key: half_a_turn(game.init(key), key))(keys[0])
    after = jax.jit(jax.vmap(lambda i: dice.step(state, jnp.argmax(game.legal(state)), i, keys[0])))(jnp.arange(21))
    assert (jax.vmap(game.to_play)(after) != game.to_play(state)).all(), "the dice were rolled"
    counts = np.asarray(jax.vmap(game.observe)(after))[:, -6:]  # how often each number may be played
    for (low, high), count in zip(rolls, counts):
        assert count[low] > 0 and count[high] > 0 and count.sum() == (4 if low == high else 2)
    model = with_outcomes(
        perfect(game, lambda params, x: (jnp.zeros((len(x), game.num_actions)), x[:, 0] / 15)), game, dice
    )
    out = jax.jit(jz.gumbel(model, 400, max_considered=2))(None, keys[:2], states(game, 2))
    assert (out.info.status == 0).all()
    facts, visits = unpack_facts(out.tree.facts[:, :-1]), np.asarray(out.tree.visits)
    busy = int(np.argmax(np.where(facts.chance, visits, 0)[0]))
    counts = np.asarray(jz.search.edge_view(out.tree, jnp.array([busy, 0])).visits[0, :21])
    n = counts.sum()
    assert n > 60 and -np.minimum(counts - n * np.asarray(weights), 0).sum() <= 21 / 2
