"""`--average-symmetries`, and `mean:` in a tournament: networks average over all symmetric forms of a position."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.playing import network_models, play, tournament
from jaxzero.cli.playing.play_settings import Player
from jaxzero.cli.playing.tournament_settings import Config
from jaxzero.nets import weights


@pytest.fixture(scope="module")
def game():
    return games.from_pgx("tic_tac_toe")


@pytest.fixture(scope="module")
def file(tmp_path_factory, game):
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    _, params = nets.mlp(game, (8,), key=jax.random.key(0))
    weights.save(path, params, {"game": game.id, "network": {"kind": "mlp", "hidden": [8]}, "step": 7})
    return path


def answers(network, game):
    """The logits and the value of a position, and of the same turned by a quarter."""
    keys = jax.random.split(jax.random.key(0), 1)
    states = []
    for actions in ((0, 1), (2, 5)):  # the corner at the top left and the side after it, clockwise; the same, turned
        state = jax.vmap(game.init)(keys)
        for action in actions:
            state = jax.vmap(game.step)(state, jnp.full(1, action), keys)
        states.append(state)
    steps = [network.model.root(network.params, keys, state)[0] for state in states]
    turned = np.rot90(np.asarray(steps[0].prior_logits).reshape(3, 3), -1).ravel()
    return (turned, steps[0].value), (np.asarray(steps[1].prior_logits).ravel(), steps[1].value)


@pytest.mark.parametrize("average", [False, True])
def test_all_forms_of_a_position_are_answered_alike_where_the_mean_is_asked_for(game, file, average):
    network = network_models.load(file, game, average)
    (logits, value), (turned_logits, turned_value) = answers(network, game)
    legal = np.isfinite(turned_logits)
    alike = np.allclose(logits[legal], turned_logits[legal], atol=1e-5) and np.allclose(value, turned_value, atol=1e-5)
    assert alike == average


def test_an_engine_asks_for_the_mean_and_says_so(game, file, monkeypatch):
    asked, whole = [], network_models.load
    monkeypatch.setattr(network_models, "load", lambda *given: (asked.append(given[2]), whole(*given))[1])
    player = Player(game=game.id, weights=str(file), average_symmetries=True)
    words = play.engine(player, 9, 7.0)[1]
    assert words.endswith("(step 7), averaged over 8 symmetric forms")
    assert "symmetric" not in play.engine(Player(game=game.id, weights=str(file)), 9, 7.0)[1]
    assert asked == [True, False]


def test_a_tournament_has_players_with_the_mean_and_without(game, file):
    names = f"mean:raw:{file}", f"raw:{file}", f"mean:{file}:8", f"{file}:8"
    _, players = tournament.prepare(Config(game=game.id, players=names))
    keys, squares = jax.random.split(jax.random.key(0), 9), jnp.arange(9)
    states = jax.vmap(game.step)(jax.vmap(game.init)(keys), squares, keys)
    raw, raw_alone, searching, searching_alone = (players[name] for name in names)
    logits, alone = (
        network.model.root(network.params, keys, states)[0].prior_logits
        for network in (network_models.load(file, game, average) for average in (True, False))
    )
    taken = raw.policy(raw.params, keys, states).action
    legal = jax.vmap(game.legal)(states)

    def short(logits):  # of the best, and not which action it is: a square may be the symmetric form of another
        return jnp.max(jnp.where(legal, logits, -jnp.inf), 1) - logits[jnp.arange(9), taken]

    assert (short(logits) < 1e-5).all() and (short(alone) > 1e-3).any()
    taken = raw_alone.policy(raw_alone.params, keys, states).action
    assert (short(alone) < 1e-5).all()
    values = [one.policy(one.params, keys, states).value for one in (searching, searching_alone)]
    corners = jnp.array([0, 2, 6, 8])  # are each other's symmetric forms
    assert np.ptp(values[0][corners]) < 1e-5 < 1e-3 < np.ptp(values[1][corners])


def test_what_has_no_symmetric_forms_is_refused(game, file):
    with pytest.raises(ValueError, match="tic_tac_toe has no symmetries besides the identity .* Leave it out"):
        network_models.load(file, game._replace(symmetries=()), True)
    with pytest.raises(ValueError, match="no network comes with jaxzero for hex_5x5 .* Give --weights FILE"):
        play.engine(Player(game="hex_5x5", average_symmetries=True), 9, 7.0)
    with pytest.raises(ValueError, match="--average-symmetries: random playouts have nothing to average"):
        play.engine(Player(game="tic_tac_toe", weights="none", average_symmetries=True), 9, 7.0)
