"""Symmetric evaluation: what turns with the position, what does not change at all, and what is drawn."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.models import symmetry
from jaxzero.search.checks.model_checks import evaluated
from tests.race import race

pytest.importorskip("pgx")

GAMES = ("tic_tac_toe", "connect_four", "othello", "hex", "go_9x9")


def prefers_sides(game: games.Game):
    """A network that no symmetry leaves as it is: random weights for every number that it sees."""
    rng, size = np.random.default_rng(1), int(np.prod(game.observation_shape))
    weights = jnp.asarray(rng.normal(size=(size, game.num_actions + 1)) / np.sqrt(size), jnp.float32)

    def network(params, x):
        out = jnp.tanh(x.reshape(len(x), -1) @ weights)
        return 3 * out[:, 1:], out[:, 0]

    return network


def even_handed(game: games.Game):
    """One that all symmetries of a square board leave as it is; its numbers are exact in any order of adding."""

    def network(params, x):
        mine, theirs = x[..., 0], x[..., 1]
        around = lambda stones: sum(jnp.roll(stones, d, axis) for d in (1, -1) for axis in (1, 2))
        squares = 3 * around(mine) - 2 * around(theirs) + mine
        if game.id == "connect_four":  # actions are columns; rows differ
            columns = 2 * mine.sum(1) - theirs.sum(1)
            squares = columns + jnp.roll(columns, 1, 1) + jnp.roll(columns, -1, 1)
        squares = squares.reshape(len(x), -1)
        rest = jnp.tile(mine.sum((1, 2))[:, None], (1, game.num_actions - squares.shape[1]))
        return jnp.concatenate([squares, rest], 1) / 8, (mine.sum((1, 2)) - 2 * theirs.sum((1, 2))) / 64

    return network


def observations(game: games.Game, batch: int = 6) -> jax.Array:
    """Anything of the right shape will do: turning is turning."""
    drawn = np.random.default_rng(0).random((batch, *game.observation_shape)) < 0.4
    return jnp.asarray(drawn, jnp.float32)


@functools.cache
def positions(env_id: str, batch: int = 6, plies: int = 5):
    """After a few random moves."""
    game = games.from_pgx(env_id)

    def move(i, carry):
        state, keys = carry
        keys = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
        logits = jnp.where(jax.vmap(game.legal)(state), 0.0, -jnp.inf)
        return jax.vmap(game.step)(state, jax.vmap(jax.random.categorical)(keys, logits), keys), keys

    def play(keys):
        return jax.lax.fori_loop(0, plies, move, (jax.vmap(game.init)(keys), keys))[0]

    return jax.jit(play)(jax.random.split(jax.random.key(0), batch))


@pytest.mark.parametrize("env_id", GAMES)
def test_the_average_turns_with_the_position(env_id):
    game = games.from_pgx(env_id)
    network = prefers_sides(game)
    x = observations(game)
    average = jax.jit(symmetry.averaged(game, network))
    logits, value = average(None, x)
    assert logits.shape == (len(x), game.num_actions) and value.shape == (len(x),)
    for form in game.symmetries:
        turned = jax.vmap(form.observation)(x)
        of_turned, its_value = average(None, turned)
        np.testing.assert_allclose(of_turned, logits[:, jnp.array(form.actions)], atol=2e-6)
        np.testing.assert_allclose(its_value, value, atol=2e-6)
        if form is not game.symmetries[0]:  # the network alone does no such thing
            alone, before = network(None, turned)[0], network(None, x)[0]
            assert np.abs(alone - before[:, jnp.array(form.actions)]).max() > 0.1


@pytest.mark.parametrize("env_id", GAMES)
def test_an_even_handed_network_is_left_as_it_is(env_id):
    """To the last bit: an action looked up the wrong way round would be another action's number."""
    game = games.from_pgx(env_id)
    network, x = even_handed(game), observations(game)
    logits, value = network(None, x)
    assert len(np.unique(logits[0])) > 2
    average = symmetry.averaged(game, network)(None, x)
    np.testing.assert_array_equal(average[0], logits)
    np.testing.assert_array_equal(average[1], value)


@pytest.mark.parametrize(
    "env_id", [x if x == "connect_four" else pytest.param(x, marks=pytest.mark.slow) for x in GAMES]
)
def test_no_form_of_it_is_told_from_another(env_id):
    game, state = games.from_pgx(env_id), positions(env_id)
    keys = jax.random.split(jax.random.key(0), 6)
    network = even_handed(game)
    step, _ = jax.jit(symmetry.drawn(game, network).root)(None, keys, state)
    logits, value = network(None, jax.vmap(game.observe)(state))
    np.testing.assert_array_equal(step.prior_logits, logits)
    np.testing.assert_array_equal(step.value, value)


@functools.cache
def outputs(which: str, evaluation: str):
    """Of a search with one policy from a few positions."""
    game = games.from_pgx("tic_tac_toe")
    network = even_handed(game) if which == "even_handed" else prefers_sides(game)
    model = {
        "plain": lambda: models.perfect(game, network),
        "averaged": lambda: models.perfect(game, symmetry.averaged(game, network)),
        "drawn": lambda: symmetry.drawn(game, network),
    }[evaluation]()
    policy, state = jax.jit(jz.gumbel(model, 24)), positions("tic_tac_toe")
    return policy(None, jax.random.split(jax.random.key(1), 6), state)


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", ["averaged", "drawn"])
def test_an_even_handed_network_is_searched_the_same(evaluation):
    plain, out = (outputs("even_handed", e) for e in ("plain", evaluation))
    np.testing.assert_array_equal(out.tree.visits, plain.tree.visits)
    np.testing.assert_allclose(out.tree.value, plain.tree.value, rtol=3e-7)  # two programs: the last bit may differ
    np.testing.assert_array_equal(out.action, plain.action)


@pytest.mark.slow
def test_a_search_sees_the_forms_drawn():
    plain, out = (outputs("prefers_sides", e) for e in ("plain", "drawn"))
    assert (out.info.status == 0).all()
    assert (np.asarray(out.tree.visits) != np.asarray(plain.tree.visits)).any()


@functools.cache
def numbered(game: games.Game):
    """What a network that numbers the actions says of a new game, as it comes back."""
    model = symmetry.drawn(game, lambda params, x: (jnp.tile(jnp.arange(9.0), (len(x), 1)), jnp.zeros(len(x))))
    return jax.jit(lambda keys: model.root(None, keys, jax.vmap(game.init)(keys))[0].prior_logits)


def forms_drawn(game: games.Game, keys: jax.Array) -> np.ndarray:
    """Which symmetry each key draws."""
    logits = numbered(game)(keys)
    inverse = np.argsort([form.actions for form in game.symmetries], -1)
    same = (np.asarray(logits)[:, None] == inverse).all(-1)
    assert (same.sum(-1) == 1).all(), "each answer is turned back by one of the symmetries"
    return same.argmax(-1)


def test_forms_are_drawn_uniformly_and_by_key():
    game, draws = games.from_pgx("tic_tac_toe"), 8000
    keys = jax.random.split(jax.random.key(7), draws)
    which = forms_drawn(game, keys)
    count = np.bincount(which, minlength=8)
    assert ((count - draws / 8) ** 2 / (draws / 8)).sum() < 40.5  # χ² with 7 degrees of freedom: once in a million
    np.testing.assert_array_equal(which[100:106], forms_drawn(game, keys[100:106]))
    folded = jax.vmap(jax.random.fold_in)(jnp.repeat(keys[:1], draws), jnp.arange(draws))  # as simulations do
    count = np.bincount(forms_drawn(game, folded), minlength=8)
    assert ((count - draws / 8) ** 2 / (draws / 8)).sum() < 40.5


def test_the_answer_is_that_of_the_form_drawn():
    """Of a network that prefers sides, every form's answer, turned back, is the only thing that can come out."""
    game, state = games.from_pgx("tic_tac_toe"), positions("tic_tac_toe")
    network, keys = prefers_sides(game), jax.random.split(jax.random.key(3), 6)
    x = jax.vmap(game.observe)(state)
    step, _ = symmetry.drawn(game, network).root(None, keys, state)
    for i, form in enumerate(forms_drawn(game, keys)):
        chosen = game.symmetries[form]
        logits, value = network(None, chosen.observation(x[i])[None])
        expected = np.zeros(9)
        for j, action in enumerate(chosen.actions):  # action j of what was seen is that one of the position
            expected[action] = logits[0, j]
        np.testing.assert_allclose(step.prior_logits[i], expected, atol=1e-6)
        np.testing.assert_allclose(step.value[i], value[0], atol=1e-6)


def test_a_step_is_its_two_halves():
    """The same form is drawn for the answer whether it is asked for at once or later: so lanes may divide the step."""
    game, state = games.from_pgx("tic_tac_toe"), positions("tic_tac_toe")
    model, keys = symmetry.drawn(game, prefers_sides(game)), jax.random.split(jax.random.key(5), 6)
    action = jnp.argmax(jax.vmap(game.legal)(state), -1)
    embedding = jax.vmap(game.pack)(state)
    whole, below = model.step(None, keys, action, embedding)
    told, position, same = model.move(None, keys, action, embedding)
    halves = evaluated(told, *model.evaluate(None, keys, position))
    jax.tree.map(np.testing.assert_array_equal, (halves, same), (whole, below))
    bare = lambda game, network: models.perfect(game, network)._replace(move=None)
    assert symmetry.drawn(game, prefers_sides(game), bare).evaluate is None


def test_values_per_player_stay_with_their_players():
    game, _ = race((0, 1, 2), 3)
    mirror = games.Symmetry(lambda x: x[::-1], (2, 1, 0))
    game = game._replace(symmetries=(games.Symmetry(lambda x: x, (0, 1, 2)), mirror))
    network = lambda params, x: (x[:, :3], x[:, 1:])
    logits, value = symmetry.averaged(game, network)(None, jnp.float32([[1, 2, 3, 4]]))
    np.testing.assert_allclose(logits, [[(1 + 2) / 2, (2 + 3) / 2, (3 + 4) / 2]])
    np.testing.assert_allclose(value, [[(2 + 3) / 2, (3 + 2) / 2, (4 + 1) / 2]])


@pytest.mark.parametrize("build", [symmetry.averaged, symmetry.drawn])
def test_a_game_that_lists_no_symmetry_is_refused(build):
    with pytest.raises(ValueError, match="'race' has no symmetries: Game.symmetries must list the identity"):
        build(race((0,), 1)[0], lambda params, x: (x, x))
