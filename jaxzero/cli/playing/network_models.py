"""The network of a weights file as the model of a search: with the rules of the game, or with dynamics it learned."""

import pathlib
from typing import Any, NamedTuple

import jax

from jaxzero import games, models, nets
from jaxzero.models.symmetry import averaged
from jaxzero.nets import weights
from jaxzero.nets.files.params_file import OF_A_RUN
from jaxzero.types import Model, Params

__all__ = ["WEIGHTS", "NetworkModel", "comes_along", "game_of", "komi_of", "load", "weights_file"]

WEIGHTS = OF_A_RUN


class NetworkModel(NamedTuple):
    """The model that a search looks ahead with.

    Attributes:
        model: of positions of the game.
        params: its parameters.
        about: what the file says of itself.
        learned: whether it looks ahead without the rules: its nodes hold no positions, and it proves nothing.
    """

    model: Model
    params: Params
    about: dict[str, Any]
    learned: bool


def weights_file(path: pathlib.Path) -> pathlib.Path:
    """The file itself, or the one in a run's folder."""
    return path / WEIGHTS if path.is_dir() else path


def game_of(about: dict[str, Any]) -> Any:
    """The game that weights are of, as their file tells it; it may come from anywhere."""
    environment = about.get("environment")
    if isinstance(environment, dict):
        return environment.get("name", environment.get("id"))
    return about.get("rules", about.get("game"))


def komi_of(about: dict[str, Any]) -> float | None:
    """The komi that weights of Go were learned with; None: their file does not give it as a number."""
    komi = about.get("komi")
    return komi if type(komi) in (int, float) else None


def comes_along(game: games.Game, rules: str) -> pathlib.Path | None:
    """The file that comes with jaxzero for a game, if it is for these rules.

    Args:
        game: to be played.
        rules: its name on the command line. The id is not enough: our own Go and pgx's share one, and a user's game may
            share it, too.
    """
    file = weights.TRAINED / f"{game.id}.safetensors"
    if not file.is_file():
        return None
    about = weights.read_about(file)
    return file if about.get("rules", about.get("game")) == rules else None


def load(path: pathlib.Path, game: games.Game, average_symmetries: bool = False) -> NetworkModel:
    """The model of a file or a run's folder.

    Args:
        path: of the file, or of the folder.
        game: to be played.
        average_symmetries: the network answers the mean over all symmetric forms of a position, see `averaged`.

    Raises:
        WeightsError: the file is damaged, or of another game.
        ValueError: symmetries of a game that has none, or of a model that was learned without the rules.
    """
    file = weights_file(path)
    if "environment" not in weights.read_about(file):
        net, params, about = weights.load(file, game)
        net = _averaged(game, net) if average_symmetries else net
        return NetworkModel(models.perfect(game, net), params, about, learned=False)
    network, params, about = nets.load_learned(file)
    of = about["environment"]
    here = game.id, list(game.observation_shape), game.num_actions
    if (of["id"], of["observation_shape"], of["num_actions"]) != here:
        there = f"{of['id']!r} with observations of shape {of['observation_shape']} and {of['num_actions']} actions"
        raise weights.WeightsError(
            f"{file}: it is for {there}: give that game, not {game.id} with {list(game.observation_shape)} and "
            f"{game.num_actions}."
        )
    if game.num_players != 2:
        raise weights.WeightsError(
            f"{file}: {game.id} has {game.num_players} player(s), and a learned model needs two."
        )
    if average_symmetries:
        raise ValueError(
            f"averaging over symmetric forms with {file}, a learned model: the positions that it imagines have no "
            "symmetric forms. Leave it out."
        )
    functions = nets.for_search(network, -of.get("discount", 1.0))
    model = models.learned(*functions, observe=jax.vmap(game.observe), legal=jax.vmap(game.legal))
    return NetworkModel(model, params, about, learned=True)


def _averaged(game: games.Game, net: Any) -> Any:
    if len(game.symmetries) < 2:
        raise ValueError(
            f"averaging over symmetric forms: {game.id} has no symmetries besides the identity "
            "(`Game.symmetries`). Leave it out."
        )
    return averaged(game, net)
