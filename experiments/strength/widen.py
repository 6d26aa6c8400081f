"""Makes a wider network with the same outputs, to continue training: Net2Net (Chen et al. 2016) for MLPs and windows.

    python experiments/strength/widen.py --game hex_7x7 --hidden 1024 512 --channels 96 --out runs/wide.safetensors
    python experiments/strength/widen.py --game tic_tac_toe --input-features --out runs/wide.safetensors
    jaxzero train --game hex_7x7 --weights runs/wide.safetensors

New units have random input weights and zero output weights: they change nothing at first, but can learn. (Net2Net
copies units instead.) Old units start with weight 0 on new input features.
"""

import argparse
import math
import pathlib

import jax
import numpy as np

from jaxzero import games
from jaxzero.atomic_files import free_name
from jaxzero.nets import weights
from jaxzero.nets.files.network_arguments import described

KINDS = "mlp", "windows"


def kept(groups: int, old: int, new: int, beside: int = 0) -> np.ndarray:
    """Indices of the old inputs: the first `old` of `new` in each group, then those outside the groups.

    >>> kept(2, 1, 3, beside=1).tolist()
    [0, 3, 6]
    """
    return np.append((np.arange(groups)[:, None] * new + np.arange(old)).ravel(), groups * new + np.arange(beside))


def layer(old: dict, new: dict, rows: np.ndarray | None = None) -> dict:
    """A layer whose old units give the same outputs; `rows`: the indices of the old inputs; default: the first ones."""
    (fan_in, fan_out), kernel = old["kernel"].shape, new["kernel"]
    rows = np.arange(fan_in) if rows is None else rows
    kernel = kernel.at[:, :fan_out].set(0).at[rows, :fan_out].set(old["kernel"])
    return {"kernel": kernel, "bias": new["bias"].at[:fan_out].set(old["bias"])}


def widened(old: dict, new: dict, rows: np.ndarray | None = None) -> dict:
    """The parameters of an MLP with more units per layer and the same outputs as the old one.

    Args:
        old: its layers by name: `dense_0` and so on, `policy` and `value`; each with a kernel `[in, out]` and a bias.
        new: those of the wider one, untrained.
        rows: the indices of the old inputs among those of the wider one.
    """
    return {name: layer(old[name], new[name], rows if name == "dense_0" else None) for name in old}


def widened_windows(old: dict, new: dict, squares: int) -> dict:
    """The same for `nets.windows`; `squares`: of one window."""
    look, before = new["look"]["kernel"], old["look"]["kernel"]
    inputs = kept(squares, len(before) // squares, len(look) // squares)
    channels, more = before.shape[1], look.shape[1]
    windows, beside = divmod(len(old["rest"]["dense_0"]["kernel"]), channels)  # beside them: the parity of stones
    rows = kept(windows, channels, more, beside)
    return {"look": layer(old["look"], new["look"], inputs), "rest": widened(old["rest"], new["rest"], rows)}


def wider(given: argparse.Namespace, network: dict) -> dict:
    """The description of the requested network, from that of the given one."""
    units = {name: getattr(given, name) for name in ("hidden", "channels") if getattr(given, name) is not None}
    return network | units | {name: True for name in ("canonical", "input_features") if getattr(given, name)}


def refuse(parser: argparse.ArgumentParser, given: argparse.Namespace, game: games.Game, network: dict) -> None:
    """Exits with a message if this network cannot be widened like this."""
    kind, hidden = network["kind"], network.get("hidden", [])
    if kind not in KINDS:
        parser.error(f"--weights: its network is of the kind {kind}: only {' and '.join(KINDS)} can be widened.")
    asked = hidden if given.hidden is None else given.hidden
    if len(hidden) != len(asked) or any(n < m for n, m in zip(asked, hidden, strict=True)):
        parser.error(f"--hidden {' '.join(map(str, asked))}: give at least as many for each of {hidden}.")
    channels = network.get("channels", 0)
    if given.channels is not None and kind == "mlp":
        parser.error(f"--channels {given.channels}: this network has no windows. Leave it out.")
    if given.channels is not None and given.channels < channels:
        parser.error(f"--channels {given.channels}: give {channels} or more.")
    if not hidden:
        parser.error("--weights: its network has no hidden layer.")
    if not (given.hidden or given.channels or given.canonical or given.input_features):
        parser.error("give --hidden, --channels, --canonical or --input-features.")
    for flag, words in (("canonical", "canonical form"), ("input_features", "input features")):
        if getattr(given, flag) and getattr(game, flag) is None:
            parser.error(f"--{flag.replace('_', '-')}: {game.id} names no {words}. Leave it out.")
    if wider(given, network) == network:
        parser.error("the network has all of that already: give more units or channels, or an input that it lacks.")


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", required=True, help="as jaxzero train knows it")
    parser.add_argument(
        "--weights", type=pathlib.Path, help="a file, or a run's folder; default: the network that comes with jaxzero"
    )
    parser.add_argument("--hidden", type=int, nargs="+", help="units of each hidden layer, like 512 256")
    parser.add_argument("--channels", type=int, help="windows: channels per window")
    parser.add_argument(
        "--canonical",
        action="store_true",
        help="give it positions in canonical form from now on, where the game has one, like Hex",
    )
    parser.add_argument(
        "--input-features",
        action="store_true",
        help="add the game's input features; old units start with weight 0 on them",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the new units; default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the file to write")
    return parser


def widen(game: games.Game, params: dict, network: dict, seed: int) -> dict:
    """The parameters of the wider network that `network` describes, with the same outputs as `params`."""
    builder, built = described(network, weights.KINDS)
    _, fresh = builder.build(game, **built, key=jax.random.key(seed))
    if network["kind"] == "windows":
        return widened_windows(params, fresh, network["window"] ** 2)
    squares = math.prod(game.observation_shape[:-1])
    inputs = [len(x["dense_0"]["kernel"]) // squares for x in (params, fresh)]
    return widened(params, fresh, kept(squares, *inputs))


def main() -> None:
    """Widens the network, and writes the file."""
    parser = arguments()
    given = parser.parse_args()
    try:
        game = games.by_name(given.game)
        _, params, about = weights.load(given.weights or weights.trained(game.id), game)
    except ValueError as error:
        parser.error(str(error))
    refuse(parser, given, game, about["network"])
    network = wider(given, about["network"])
    made = widen(game, params, network, given.seed)
    told = {name: x for name, x in about.items() if name != "results"}  # which describe the narrow one
    file = free_name(given.out)
    file.parent.mkdir(parents=True, exist_ok=True)
    weights.save(file, made, told | {"network": network}, game=game)
    before, after = (sum(x.size for x in jax.tree.leaves(tree)) for tree in (params, made))
    print(f"{after:,} weights in place of {before:,}: {file}")


if __name__ == "__main__":
    main()
