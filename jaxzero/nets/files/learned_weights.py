"""Weights files of networks with a learned model: built from a description, saved with it, and loaded.

The promises of `jaxzero.nets.weights` hold here, too: no code is run, and nothing in a file is believed unchecked.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.nets.files.network_arguments import (
    Argument,
    Kind,
    count,
    counts,
    described,
    number,
    one_of,
    shapes_of,
    whether,
)
from jaxzero.nets.files.params_file import Path, check_shapes, read_params, write_params
from jaxzero.nets.files.safetensors_file import WeightsError, short
from jaxzero.nets.layers import NORMALISATIONS
from jaxzero.nets.muzero.action_heads import ActionHead, factorised, gaussian
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.muzero_mlp import muzero_mlp
from jaxzero.nets.muzero.muzero_planes import muzero_planes
from jaxzero.nets.muzero.scalar_heads import bounded, hl_gauss, sqrt_transform, symlog, two_hot, win_draw_loss
from jaxzero.nets.muzero.stochastic_mlp import stochastic_mlp
from jaxzero.nets.muzero.stochastic_planes import stochastic_planes
from jaxzero.nets.muzero.towers import TOWERS
from jaxzero.types import Params

__all__ = ["build_action_head", "build_learned", "load_learned", "save_learned"]

SUPPORT = {"bins": count(4096, least=2), "limit": number(1e6)}
TRANSFORM = {"transform": one_of(symlog=symlog, sqrt=sqrt_transform)}
HEADS = {
    "bounded": Kind(bounded, {}, {}, lambda given: 0),
    "win_draw_loss": Kind(win_draw_loss, {}, {}, lambda given: 0),
    "two_hot": Kind(two_hot, SUPPORT, TRANSFORM, lambda given: 0),
    "hl_gauss": Kind(hl_gauss, SUPPORT, {"sigma": number(100.0)} | TRANSFORM, lambda given: 0),
}


def _head(value: Any) -> Any:
    """The head that a JSON value describes; None if it describes none."""
    try:
        kind, given = described(value if isinstance(value, dict) else {}, HEADS)
    except WeightsError:
        return None
    return kind.build(**given)


HEAD = Argument(
    '{"kind": "bounded"}, {"kind": "win_draw_loss"}, {"kind": "two_hot", "bins": 601, "limit": 300} or '
    '{"kind": "hl_gauss", "bins": 41, "limit": 5}, where sigma (of hl_gauss) and transform (symlog or sqrt) may '
    "be added",
    _head,
)
BOTH = {
    "value": HEAD,
    "reward": HEAD,
    "width": count(65_536),
    "projection": count(65_536, least=0),
    "normalisation": one_of(**{name: name for name in NORMALISATIONS}),
}
SQUASH = {"squash": whether()}
TOWER = {"tower": one_of(**{name: name for name in TOWERS})}


LARGEST = float(np.finfo(np.float32).max)


def _numbers(value: Any, most: int) -> tuple[float, ...] | None:
    fits = lambda x: type(x) in (int, float) and -LARGEST <= x <= LARGEST
    right = isinstance(value, list) and 0 < len(value) <= most and all(map(fits, value))
    return tuple(float(x) for x in value) if right else None


ENDS = Argument("a list of up to 64 numbers", lambda value: _numbers(value, 64))
ACTION_HEADS = {
    "gaussian": Kind(gaussian, {"low": ENDS, "high": ENDS}, {}, lambda given: 0),
    "factorised": Kind(factorised, {"low": ENDS, "high": ENDS, "bins": count(1024, least=2)}, {}, lambda given: 0),
}


def _action_head(value: Any) -> ActionHead | None:
    """The policy that a JSON value describes; None if it describes none."""
    try:
        return build_action_head(value)
    except ValueError:
        return None


def build_action_head(head: Any) -> ActionHead:
    """The head of a policy over continuous actions, from `{"kind": "gaussian", "low": [...], "high": [...]}`.

    Raises:
        ValueError: no such policy.
    """
    kind, given = described(head if isinstance(head, dict) else {}, ACTION_HEADS)
    return kind.build(**given)


POLICY = Argument('{"kind": "gaussian", "low": [-2], "high": [2]}, or "factorised" with bins', _action_head)
KINDS = {
    "muzero_mlp": Kind(
        muzero_mlp,
        BOTH | {"embedding": count(65_536), "depth": count(32)},
        SQUASH | {"window": count(64, least=0), "channels": count(4096), "policy": POLICY},
        lambda given: 6 * given["depth"],
    ),
    "muzero_planes": Kind(
        muzero_planes,
        BOTH | {"channels": count(4096), "blocks": count(40)},
        SQUASH | TOWER,
        lambda given: 16 * given["blocks"],
    ),
    "stochastic_mlp": Kind(
        stochastic_mlp,
        {name: BOTH[name] for name in ("value", "reward", "width", "normalisation")}
        | {"embedding": count(65_536), "depth": count(32), "codes": count(4096, least=2)},
        {},
        lambda given: 12 * given["depth"],
    ),
    "stochastic_planes": Kind(
        stochastic_planes,
        {name: BOTH[name] for name in ("value", "reward", "width", "normalisation")}
        | {"channels": count(4096), "blocks": count(40), "codes": count(4096, least=2)},
        TOWER,
        lambda given: 32 * given["blocks"],
    ),
}
OBSERVATION = counts(65_536, 8)


def build_learned(
    network: dict[str, Any], observation_shape: tuple[int, ...], num_actions: int, key: chex.PRNGKey
) -> tuple[LearnedNetwork, Params]:
    """The network that a description describes, so that a run builds what its files say.

    Args:
        network: "kind", `"muzero_mlp"`, `"muzero_planes"`, `"stochastic_mlp"` or `"stochastic_planes"`, and all
            arguments of the function of that name in `jaxzero.nets`, as JSON has them; "squash" may be left out where
            it is false, and "tower" where it is "convolutions". Heads are `{"kind": "win_draw_loss"}`,
            `{"kind": "bounded"}`, `{"kind": "two_hot", "bins": 601, "limit": 300}` or `{"kind": "hl_gauss", "bins": 41,
            "limit": 5}`. The latter two also take "transform" (`"symlog"` or `"sqrt"`), and `hl_gauss` takes "sigma";
            left out, they are as published.
        observation_shape: of an observation.
        num_actions: A.
        key: for the initial parameters.

    Raises:
        ValueError: no such network, or none for observations of this shape.

    Example:
        >>> head = {"kind": "hl_gauss", "bins": 41, "limit": 5.0}
        >>> description = {
        ...     "kind": "muzero_mlp", "value": head, "reward": head, "embedding": 32, "width": 64, "depth": 1,
        ...     "projection": 0, "normalisation": "layer",
        ... }  # fmt: skip
        >>> network, params = build_learned(description, (4,), 2, jax.random.key(0))
        >>> network.value.size, params["prediction"]["policy"]["kernel"].shape
        (41, (64, 2))
    """
    if not isinstance(network, dict):
        raise ValueError(f"build_learned: the network is {short(network)}: give a dictionary, its kind and arguments.")
    try:
        kind, given = described(network, KINDS)
    except WeightsError as error:
        raise ValueError(f"build_learned: {error}") from error
    return kind.build(tuple(observation_shape), num_actions, **given, key=key)


def save_learned(file: Path, params: Params, about: dict[str, Any], overwrite: bool = False) -> None:
    """Write the weights of a network that `build_learned` built: as a whole, or no file at all.

    Args:
        file: its name, by custom with the ending .safetensors.
        params: nested dictionaries of arrays, all finite.
        about: JSON values. "network" is what `build_learned` was given, "environment" says for what: `{"id": ...,
            "observation_shape": [...], "num_actions": ...}`. Whatever else is worth knowing may stand beside them.
        overwrite: whether a file of this name with other content is replaced. The same content is left alone.

    Raises:
        WeightsError: no such file can be written, or there is one, or these are not the parameters of that network.

    Example:
        >>> import tempfile
        >>> head = {"kind": "bounded"}
        >>> description = {
        ...     "kind": "muzero_planes", "value": head, "reward": head, "channels": 4, "blocks": 1, "width": 8,
        ...     "projection": 0, "normalisation": "layer",
        ... }  # fmt: skip
        >>> network, params = build_learned(description, (3, 3, 2), 9, jax.random.key(0))
        >>> environment = {"id": "tic_tac_toe", "observation_shape": [3, 3, 2], "num_actions": 9}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_learned(f"{folder}/weights", params, {"environment": environment, "network": description})
        ...     network, params, about = load_learned(f"{folder}/weights")
        >>> about["environment"]["id"], params["representation"]["stem"]["kernel"].shape
        ('tic_tac_toe', (3, 3, 2, 4))
    """
    write_params(file, params, about, overwrite, _fitting)


def load_learned(file: Path) -> tuple[LearnedNetwork, Params, dict[str, Any]]:
    """The network, its weights in float32, and what the file says about them.

    Nothing is compiled, and nothing allocated but the weights. Whether the environment at hand is the one that
    `about["environment"]` names is for the caller to check.

    Args:
        file: written by `save_learned`; may come from anywhere.

    Raises:
        WeightsError: the file is damaged or hostile, or of another kind, version or network than it says.
    """
    network, params, about = read_params(file, _fitting)
    return network, jax.tree.map(lambda x: x.astype(jnp.float32), params), about


def _fitting(about: dict[str, Any], there: dict[str, tuple[int, ...]]) -> tuple[LearnedNetwork, Params]:
    """The network that is described, and the shapes of its parameters, if the file's arrays have the same."""
    environment, network = about.get("environment"), about.get("network")
    if not isinstance(environment, dict) or not isinstance(network, dict):
        raise WeightsError(
            "it does not say which environment and network it is for: save it with "
            'about={"environment": ..., "network": ...}.'
        )
    shape = OBSERVATION.made(environment.get("observation_shape"))
    num_actions = count(65_536).made(environment.get("num_actions"))
    if not isinstance(environment.get("id"), str) or shape is None or num_actions is None:
        raise WeightsError(
            f"its environment is {short(environment)}: give id, observation_shape, which is {OBSERVATION.allowed}, and "
            "num_actions, 1 to 65536."
        )
    if "discount" in environment and number(1.0).made(environment["discount"]) is None:
        raise WeightsError(f"its discount is {short(environment['discount'])}: use {number(1.0).allowed}.")
    kind, given = described(network, KINDS, len(there))
    build = lambda: kind.build(shape, num_actions, **given, key=jax.random.key(0))
    made, expected = shapes_of(build, f"observations of shape {short(list(shape))}")
    check_shapes(expected, there)
    return made, expected
