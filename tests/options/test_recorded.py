"""Searches with recorded results: what a change of the code must leave as it was.

`tests/data/recorded.json` holds visits and actions at the root (compared exactly) and values (to 1e-5) of a search, and
of the one after it, for combinations of options that hold every pair of them. They were recorded before the modules got
their present places and names. A change that is meant to change results records them anew, and says why:

    .venv/bin/python -m tests.options.test_recorded tests/data/recorded.json
"""

import json
import sys
from typing import Any

import jax
import numpy as np
import pytest

from tests import option_combinations as options
from tests import worlds
from tests.documents import ROOT
from tests.options import test_composition as composition

FILE = ROOT / "tests" / "data" / "recorded.json"
ROWS = [dict(row) for row in options.covering()]
FEW = [0, 9]  # run in any case; the others with the exhaustive tests


def found(given: options.Combination) -> list[dict[str, Any]]:
    """What the calls of a combination answer, in numbers."""
    players, chance = {"two": 2, "three": 3}[given["players"]], given["chance"] == "some"
    if given["proof"] == "none":
        kinds = ["continuous"] * composition.GAMES
        world = worlds.make(range(composition.GAMES), kinds, num_actions=options.ACTIONS, num_players=players)
        world = worlds.with_chance(world, 1, 0.3) if chance else world
    else:  # what is proven is between -1 and 1
        world = composition.bounded(players, chance, tuple(range(composition.GAMES)))
    answers = composition.Compiled(given)(world, jax.random.split(jax.random.key(7), composition.GAMES))
    return [
        {
            "visits": np.asarray(answer.out.info.summary.visits).tolist(),
            "action": np.asarray(answer.out.action).tolist(),
            "value": np.asarray(answer.out.value, float).round(7).tolist(),
        }
        for answer in answers
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [row if row in FEW else pytest.param(row, marks=pytest.mark.exhaustive) for row in range(len(ROWS))]
)
def test_results_are_as_recorded(row):
    recorded = json.loads(FILE.read_text())[options.told(ROWS[row])]
    for then, now in zip(recorded, found(ROWS[row]), strict=True):
        assert (now["visits"], now["action"]) == (then["visits"], then["action"])
        np.testing.assert_allclose(now["value"], then["value"], atol=1e-5)


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump({options.told(row): found(row) for row in ROWS}, file)
