"""The weights that a run begins with: those of `--weights`, in place of untrained ones.

A run keeps a copy of the file in its folder, and so goes on when the file is gone, or has changed.
"""

import dataclasses
import hashlib
import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero import games
from jaxzero.atomic_files import write_whole
from jaxzero.cli.playing import network_models
from jaxzero.cli.playing.play_settings import TRAINED, means_trained
from jaxzero.cli.training.presets import BEFORE
from jaxzero.cli.training.settings import Config, Network
from jaxzero.nets import weights
from jaxzero.runs import process_coordination

__all__ = ["find", "keep", "load", "with_their_network"]

COPY = "initial_weights.safetensors"


def find(config: Config, game: games.Game, folder: pathlib.Path) -> pathlib.Path | None:
    """The file of the weights: the copy in the run's folder, else the one named; None: the run begins untrained.

    Every process has to call it.

    Raises:
        ValueError: no such file, one of another kind of training, or not the same one on all hosts. All hosts raise it.
    """
    if not config.weights:
        return None
    file, digest, wrong = folder / COPY, "", ""
    try:
        file = file if file.is_file() else _named(config, game)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        about = weights.read_about(file)
        if "environment" in about:
            wrong = f"{file} holds a learned model. Give weights of --model rules."
        elif not isinstance(about.get("network"), dict):
            wrong = f"{file} describes no network that self-play can begin with. Give weights of a board game."
    except (OSError, ValueError) as error:
        wrong = f"{error}{_advice(file, error)}"
    found = process_coordination.gathered([digest, wrong[:1000]])
    wrong = next((said for _, said in found if said), "")
    if not wrong and len({one for one, _ in found}) > 1:
        wrong = "this file differs between hosts. Give all of them the same."
    if wrong:
        raise ValueError(f"--weights {config.weights}: {wrong}")
    return file


def _named(config: Config, game: games.Game) -> pathlib.Path:
    given = pathlib.Path(config.weights)
    if means_trained(config.weights):
        shipped = network_models.comes_along(game, config.game)
        if shipped is None:
            named = config.game if config.game == game.id else f"{config.game} ({game.id})"
            raise ValueError(f"no network comes with jaxzero for --game {named}. Name a file.")
        return shipped
    file = network_models.weights_file(given)
    if not file.is_file():
        missing = f"there is no {file.name} in this folder" if given.is_dir() else "there is no such file"
        raise ValueError(f"{missing}. Give a file of weights, a run's folder, or {TRAINED}.")
    return file


def with_their_network(config: Config, file: pathlib.Path | None) -> Config:
    """The settings with the network that the weights are of, whatever a preset says."""
    if file is None:
        return config
    described = {n: tuple(x) if isinstance(x, list) else x for n, x in weights.read_about(file)["network"].items()}
    known = {field.name for field in dataclasses.fields(Network)}
    network = dataclasses.replace(BEFORE.network, **{n: x for n, x in described.items() if n in known})
    return dataclasses.replace(config, network=network)


def load(file: pathlib.Path | None, game: games.Game) -> Any | None:
    """The weights in float32, the type that a run learns in; or None."""
    if file is None:
        return None
    try:
        params = weights.load(file, game)[1]
    except weights.WeightsError as error:
        raise ValueError(f"--weights: {error}{_advice(file, error)}") from error
    return jax.tree.map(lambda x: x.astype(jnp.float32), params)


def _advice(file: pathlib.Path, error: Exception) -> str:
    """What to do about damage, if it is the run's own copy that is damaged."""
    if file.name != COPY or not isinstance(error, weights.WeightsError):
        return ""
    return " This is the run's copy: if --weights still names the same file, delete the copy, and it is made again."


def keep(file: pathlib.Path | None, folder: pathlib.Path) -> None:
    """Copies the file into the run's folder, if it is not there. Every process has to call it."""
    if file is not None and file != folder / COPY:
        process_coordination.on_first(lambda: write_whole(folder / COPY, [file.read_bytes()]))
