"""The network that a run begins with: that of `--weights`, in place of an untrained one."""

import dataclasses
import pathlib
from typing import Any

from jaxzero import games
from jaxzero.cli.playing.network_models import weights_file
from jaxzero.cli.training.settings import Config, Network
from jaxzero.nets import weights

__all__ = ["begun_with", "params_of", "with_its_network"]

COMES_ALONG = "trained"  # the one that comes with jaxzero


def begun_with(config: Config, game: games.Game) -> pathlib.Path | None:
    """The file that is meant; None: the run begins with an untrained network.

    Raises:
        ValueError: there is no such file.
    """
    if not config.weights:
        return None
    given = pathlib.Path(config.weights)
    file = weights.trained(game.id) if config.weights == COMES_ALONG else weights_file(given)
    if not file.is_file():
        raise ValueError(f"--weights {given}: no such file. Give one, a run's folder, or {COMES_ALONG}.")
    return file


def with_its_network(config: Config, game: games.Game) -> Config:
    """The settings with the network of that file, whatever was asked for: weights fit the network that they are of."""
    file = begun_with(config, game)
    if file is None:
        return config
    _, _, about = weights.load(file, game)
    described = {name: tuple(x) if isinstance(x, list) else x for name, x in about["network"].items()}
    known = {field.name for field in dataclasses.fields(Network)}
    return dataclasses.replace(config, network=Network(**{name: x for name, x in described.items() if name in known}))


def params_of(config: Config, game: games.Game) -> Any | None:
    """What it has learned already, or None."""
    file = begun_with(config, game)
    return None if file is None else weights.load(file, game)[1]
