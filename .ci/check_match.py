"""Both games of a match came to their ends, with a score, and their records are those of whole games."""

import json
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
games = json.loads((folder / "result.json").read_text())["games"]
assert len(games) == 2 and {game["ours"] for game in games} == {0, 1}, games
for game, file in zip(games, sorted(folder.glob("*.sgf")), strict=True):
    assert re.fullmatch(r"[BW]\+[0-9.]+|0", game["result"]), game["result"]
    assert len(game["moves"]) > 10 and game["moves"][-2:] == [25, 25], "a game of Go ends with two passes"
    assert f"RE[{game['result']}]" in file.read_text(), file
print("Two games against GNU Go:", ", ".join(f"{game['result']} ({game['how']})" for game in games))
