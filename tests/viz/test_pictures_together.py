"""Pictures stand in one page with others, so none may bring rules that reach beyond it."""

import jax

from jaxzero import games, viz


def test_a_picture_has_no_style_sheet():
    game = games.from_pgx("tic_tac_toe")
    pictures = [
        viz.curves({"loss": ([1, 2, 3], [3.0, 2.0, 1.5])}, bands={"loss": ([2, 1, 1], [4, 3, 2])}),
        viz.board(game, game.init(jax.random.key(0))),
        viz.crosstable(["a", "b"], [[0, 1], [2, 0]], [[0, 1], [1, 0]], [[0, 2], [1, 0]]),
    ]
    for picture in pictures:
        assert picture.svg.startswith("<svg") and "<style" not in picture.svg
    assert "stroke-linecap: butt" in pictures[0].svg.split(">")[0], "its own lines keep matplotlib's ends"
