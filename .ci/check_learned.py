"""Fails unless a run's results.json shows that something was learned: `python .ci/check_learned.py results.json`.

An untrained network with a search behind it already beats random play most of the time, so that alone proves little:
the network without a search must also have become better on positions whose exact values are known.
"""

import json
import pathlib
import sys

POINTS, FLOOR = 0.9, 0.75  # against random play: the share of points, and the lower end of its interval


def complaints(results: dict) -> list[str]:
    """What is missing, a sentence each."""
    before, after = results["before"], results["after"]
    share, low = after["random"]["share"], after["random"]["interval"][0]
    wrong, was_wrong = after["raw"]["all"], before["raw"]["all"]
    found = []
    if not share >= POINTS or not low > FLOOR:
        found.append(f"{share:.1%} against random play (at least {low:.0%}): needs {POINTS:.0%} (at least {FLOOR:.0%})")
    if not wrong < was_wrong:
        found.append(f"the raw network makes {wrong:.1%} outcome mistakes, and made {was_wrong:.1%} untrained")
    return found


if __name__ == "__main__":
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if found := complaints(results):
        sys.exit("Nothing was learned: " + "; ".join(found) + ".")
    print(
        f"Learned: {results['after']['random']['share']:.1%} against random play; raw network's outcome mistakes "
        f"{results['before']['raw']['all']:.1%} -> {results['after']['raw']['all']:.1%}."
    )
