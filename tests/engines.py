"""An engine that several tests play with: what it compiles is compiled once in each process."""

import functools

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play.engine import Engine
from jaxzero.play.engine_programs import programs

GAME = games.from_pgx("tic_tac_toe")


@functools.cache
def three_in_a_row() -> Engine:
    """Of tic-tac-toe, by random playouts; proves values; 499 simulations have room. `another` is one of one's own."""
    model, rule = models.rollout(GAME, 4), jz.avoid_proven(jz.ucb1())

    def search(n, stop, least=0):
        return jz.uct(model, n, rule=rule, root_rule=jz.root.minimum_visits(rule, least), stop=stop, capacity=500)

    return Engine(GAME, programs(GAME, search, search))
