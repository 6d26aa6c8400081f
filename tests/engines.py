"""An engine that several tests play with: what it compiles is compiled once in each process."""

import functools

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play.engine import Engine

GAME = games.from_pgx("tic_tac_toe")


@functools.cache
def three_in_a_row() -> Engine:
    """Of tic-tac-toe, by random playouts; proves values; 499 simulations have room. `another` is one of one's own."""
    model = models.rollout(GAME, 4)
    return Engine(GAME, lambda n, stop: jz.uct(model, n, rule=jz.avoid_proven(jz.ucb1()), stop=stop, capacity=500))
