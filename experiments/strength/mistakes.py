"""Outcome mistakes of a Connect Four network on exactly solved positions, with and without proven values.

    python experiments/strength/mistakes.py                                    # the network that comes with jaxzero
    python experiments/strength/mistakes.py --weights runs/connect_four --simulations 64 600 2000
    python experiments/strength/mistakes.py --simulations 64 --value-scale 0.2 # values weigh less
    python experiments/strength/mistakes.py --rescale-values                   # values mapped to [0, 1], as mctx does
    python experiments/strength/mistakes.py --average-symmetries               # mean over each mirror image, too
    python experiments/strength/mistakes.py --positions runs/positions.jsonl   # those of exact_positions.py

An outcome mistake is a move whose exact outcome is worse than the best one. Intervals are Wilson's, 95 %.
"""

import argparse
import json
import pathlib

import jax
import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.atomic_files import make_folder
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.interrupted_process import ending_at_once
from jaxzero.cli.training.settings import MAPPED_SCALE, VALUE_SCALE
from jaxzero.models.symmetry import averaged
from jaxzero.nets import weights
from jaxzero.play import arena, outcome_mistakes
from jaxzero.runs import progress_display
from jaxzero.runs.run_folder import write_whole
from jaxzero.search.qvalues import completed_by_mix_value

BATCH = 200  # positions that are searched at once


def wrong(policy, params, positions: outcome_mistakes.Positions, show=lambda done, words: None) -> np.ndarray:
    """The positions in which it errs; `show(done, words)` displays the progress."""
    search = jax.jit(lambda part: outcome_mistakes.outcome_mistakes(policy, params, part, jax.random.key(0)))
    found, count = [], len(positions.phase)
    for start in range(0, count, BATCH):
        show(start / count, f"{start} of {count} positions" if start else f"{count} positions, compiled first")
        rows = np.minimum(np.arange(start, start + BATCH), count - 1)  # the last one repeated fills the batch
        state, scores = jax.tree.map(lambda x, rows=rows: x[rows], (positions.state, positions.scores))
        part = positions._replace(state=state, scores=scores, phase=None, kind=None, tuning=None)
        found.append(np.asarray(progress_display.wait(search(part))))
    return np.concatenate(found)[:count]


def intervals(mistakes: np.ndarray, positions: outcome_mistakes.Positions) -> dict[str, list[float]]:
    """The share of mistakes of each group, and its interval."""
    shares = outcome_mistakes.rates(mistakes, positions)
    counts = {name: int(rows.sum()) for name, rows in outcome_mistakes.groups(positions).items()}
    return {name: [share, *arena.wilson(share, counts[name])] for name, share in shares.items()}


def main() -> None:
    """Measures, and prints a line for each way of choosing moves."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--weights", type=pathlib.Path, help="a file, or a run's folder; default: the network that comes with jaxzero"
    )
    parser.add_argument(
        "--positions",
        type=pathlib.Path,
        default=outcome_mistakes.CONNECT_FOUR,
        help="a file of exact_positions.py; default: those that come with jaxzero",
    )
    parser.add_argument("--simulations", type=int, nargs="*", default=(64, 600), help="default: 64 600")
    parser.add_argument(
        "--value-scale",
        type=float,
        help=f"scale of values in the search; default: {VALUE_SCALE}, mapped {MAPPED_SCALE}",
    )
    parser.add_argument(
        "--rescale-values", action="store_true", help="rescale the values of each node to [0, 1]; default: unscaled"
    )
    parser.add_argument(
        "--average-symmetries",
        action="store_true",
        help="evaluate each position as the mean over it and its mirror image",
    )
    parser.add_argument("--json", type=pathlib.Path, help="also write the numbers to this file")
    given = parser.parse_args()
    if given.json is not None and given.json.exists():
        parser.error(f"--json {given.json} exists: name a new file")
    if any(n < 1 for n in given.simulations):
        parser.error(f"--simulations {min(given.simulations)}: 1 or more; the network alone is measured anyway")
    usual = MAPPED_SCALE if given.rescale_values else VALUE_SCALE
    scale = usual if given.value_scale is None else given.value_scale
    if not 0 < scale < float("inf"):
        parser.error(f"--value-scale {scale:g}: above 0, like {VALUE_SCALE}")
    game = games.from_pgx("connect_four")
    try:
        net, params, about = weights.load(given.weights or weights.trained("connect_four"), game)
    except weights.WeightsError as error:
        parser.error(f"--weights: {error}")
    try:
        positions = outcome_mistakes.load(game, given.positions)
    except (OSError, ValueError) as error:
        parser.error(f"--positions: {error}")
    try:
        if given.json is not None:
            make_folder(given.json.parent)
    except OSError as error:
        parser.error(f"--json: the folder {given.json.parent} cannot be made: {error.strerror}. Name another one")
    model = models.perfect(game, averaged(game, net) if given.average_symmetries else net)
    policies = {"raw": arena.raw_network(model)}
    how = dict(gumbel_scale=0.0, qvalues=completed_by_mix_value(scale, rescale_values=given.rescale_values))
    for n in given.simulations:
        policies[f"{n}"] = jz.gumbel(model, n, wrap=jz.avoid_proven, **how)
        policies[f"{n} without proofs"] = jz.gumbel(model, n, **how)
    print("Mistakes in %, with intervals of 95 %")
    if given.average_symmetries:
        print("The network's mean over each position and its mirror image")
    print(f"Values {'mapped to [0, 1] at each node' if given.rescale_values else 'as they are'}, c_scale {scale:g}")
    found = circumstances() | {
        "network": about,
        "positions": {"file": given.positions.name, "count": len(positions.phase)},
        "searches": {
            "value_scale": scale,
            "rescale_values": given.rescale_values,
            "average_symmetries": given.average_symmetries,
        },
    }
    for name, policy in policies.items():
        with progress_display.live() as show:
            seen = wrong(policy, params, positions, lambda done, words, name=name: show(done, f"{name}: {words}"))
        found[name] = intervals(seen, positions)
        told = {
            group: f"{100 * x:.2f} ({100 * low:.1f}-{100 * high:.1f})" for group, (x, low, high) in found[name].items()
        }
        print(f"{name:>18}", "  ".join(f"{group} {said}" for group, said in told.items()), flush=True)
        if given.json:
            write_whole(given.json, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    ending_at_once(main)
