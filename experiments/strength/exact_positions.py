"""Generates Connect Four positions with the exact value of every move, for choosing settings.

    pip install bitbully bitbully-databases
    python experiments/strength/exact_positions.py --file runs/positions.jsonl --openings 2000 --middles 1000

The file is like the one that comes with jaxzero (`jaxzero.play.outcome_mistakes`), and shares no position with it. The
solver and its opening book are BitBully's. Half of the positions come from random moves. In the other half
("contested") the first moves are random, and later ones are drawn among the moves that keep the outcome. In each
position a mistake is possible.
"""

import argparse
import json
import pathlib
import random
import sys
from collections.abc import Callable
from typing import Any

from jaxzero.play.outcome_mistakes import CONNECT_FOUR

PLIES = {"opening": (4, 14), "middle": (15, 27)}


def sign(score: int) -> int:
    """The outcome: won, drawn, lost."""
    return (score > 0) - (score < 0)


def solver_and_board() -> tuple[Any, Callable[..., Any]]:
    """BitBully, and its board after these moves: columns from 1, as digits."""
    try:
        import bitbully
    except ImportError:
        sys.exit("This needs a solver of Connect Four: pip install bitbully bitbully-databases")
    board = bitbully.Board
    return bitbully.BitBully(), lambda moves="": board.from_moves([int(x) - 1 for x in moves]) if moves else board()


def one(solver, board_of, rng: random.Random, phase: str, kind: str) -> tuple[str, dict[int, int]] | None:
    """The moves of a position and the scores of its moves; None if the game ended, or no mistake is possible."""
    board, moves = board_of(), ""
    plies = rng.randint(*PLIES[phase])
    at_random = plies if kind == "random" else rng.randint(0, plies - 1)
    for ply in range(plies):
        good = list(board.legal_moves())
        if ply >= at_random:
            scores = solver.score_all_moves(board)
            best = max(map(sign, scores.values()))
            good = [move for move, score in scores.items() if sign(score) == best]
        move = rng.choice(sorted(good))
        moves += str(move + 1)
        board.play(move)
        if board.is_game_over():
            return None
    scores = solver.score_all_moves(board)
    return (moves, scores) if len(set(map(sign, scores.values()))) > 1 else None


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--file", type=pathlib.Path, required=True, help="to write; must not exist")
    parser.add_argument(
        "--openings", type=int, default=2000, help="positions after 4 to 14 plies; default: %(default)s"
    )
    parser.add_argument(
        "--middles", type=int, default=1000, help="positions after 15 to 27 plies; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="games follow from it; default: %(default)s")
    given = parser.parse_args()
    if given.file.exists():
        parser.error(f"--file {given.file} exists: name a new file")
    (solver, board), rng = solver_and_board(), random.Random(given.seed)
    known = [json.loads(line)["moves"] for line in CONNECT_FOUR.read_text().splitlines()]
    seen = {side.uid() for moves in known for side in (board(moves), board(moves).mirror())}
    given.file.parent.mkdir(parents=True, exist_ok=True)
    with given.file.open("x") as file:
        for phase, wanted in (("opening", given.openings), ("middle", given.middles)):
            count = 0
            while count < wanted:
                kind = ("random", "contested")[count % 2]
                found = one(solver, board, rng, phase, kind)
                if found is None or board(found[0]).uid() in seen:
                    continue
                seen |= {board(found[0]).uid(), board(found[0]).mirror().uid()}
                scores = {str(move + 1): score for move, score in sorted(found[1].items())}
                record = {"phase": phase, "kind": kind, "moves": found[0], "scores": scores}
                file.write(json.dumps(record) + "\n")
                count += 1


if __name__ == "__main__":
    main()
