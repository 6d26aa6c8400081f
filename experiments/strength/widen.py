"""A wider network that says the same, to learn on from: Net2Net (Chen et al. 2016) for hidden layers.

    python experiments/strength/widen.py --game hex_7x7 --hidden 512 256 --out runs/wide.safetensors
    jaxzero train --game hex_7x7 --weights runs/wide.safetensors

New units have random weights on their inputs, and zeros on whatever they go on to: so they change nothing at first, and
learn. (Net2Net copies units instead.) The network of Hex 7 x 7 that comes with jaxzero was widened so.
"""

import argparse
import pathlib

import jax

from jaxzero import games
from jaxzero.atomic_files import free_name
from jaxzero.nets import weights
from jaxzero.nets.files.network_arguments import described

KINDS = "mlp", "windows"


def widened(old: dict, new: dict) -> dict:
    """The parameters of a perceptron with more units a layer, which answers as the old one does.

    Args:
        old: its layers by name: `dense_0` and so on, `policy` and `value`; each with a kernel `[in, out]` and a bias.
        new: those of the wider one, untrained.
    """

    def layer(name: str) -> dict:
        (fan_in, fan_out), fresh = old[name]["kernel"].shape, new[name]
        kernel = fresh["kernel"].at[fan_in:, :fan_out].set(0).at[:fan_in, :fan_out].set(old[name]["kernel"])
        return {"kernel": kernel, "bias": fresh["bias"].at[:fan_out].set(old[name]["bias"])}

    return {name: layer(name) for name in old}


def main() -> None:
    """Widens, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--game", required=True, help="as jaxzero train knows it")
    parser.add_argument("--weights", type=pathlib.Path, help="a file, or a run's folder; default: what comes along")
    parser.add_argument("--hidden", type=int, nargs="+", required=True, help="units of each hidden layer, like 512 256")
    parser.add_argument(
        "--canonical", action="store_true", help="let it see positions in canonical form from now on, as Hex names it"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the new units; default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the file to write")
    given = parser.parse_args()
    try:
        game = games.by_name(given.game)
        _, params, about = weights.load(given.weights or weights.trained(game.id), game)
    except ValueError as error:
        parser.error(str(error))
    network = about["network"]
    kind, hidden = network["kind"], network.get("hidden", [])
    if kind not in KINDS:
        parser.error(f"--weights: its network is of the kind {kind}: widened are {' and '.join(KINDS)}.")
    if len(hidden) != len(given.hidden) or any(n < m for n, m in zip(given.hidden, hidden, strict=True)):
        parser.error(f"--hidden {' '.join(map(str, given.hidden))}: as many or more for each of {hidden}.")
    if given.canonical and game.canonical is None:
        parser.error(f"--canonical: {game.id} names no canonical form. Leave it out.")
    network = network | {"hidden": given.hidden} | ({"canonical": True} if given.canonical else {})
    builder, arguments = described(network, weights.KINDS)
    _, fresh = builder.build(game, **arguments, key=jax.random.key(given.seed))
    if kind == "windows":
        made = {"look": params["look"], "rest": widened(params["rest"], fresh["rest"])}
    else:
        made = widened(params, fresh)
    told = {name: x for name, x in about.items() if name != "results"}  # which are of the narrow one
    file = free_name(given.out)
    file.parent.mkdir(parents=True, exist_ok=True)
    weights.save(file, made, told | {"network": network}, game=game)
    count = sum(x.size for x in jax.tree.leaves(made))
    print(f"{count:,} weights, {hidden} units widened to {given.hidden}: {file}")


if __name__ == "__main__":
    main()
