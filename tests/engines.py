"""An engine that several tests share, so that each process compiles it only once."""

import functools

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play.engine import Engine
from jaxzero.play.engine_programs import programs

GAME = games.from_pgx("tic_tac_toe")


@functools.cache
def three_in_a_row() -> Engine:
    """Plays tic-tac-toe by random playouts; proves values, has room for 499 simulations. `another`: a separate one."""
    model, rule = models.rollout(GAME, 4), jz.avoid_proven(jz.ucb1())

    def search(n, stop, least=0):
        return jz.uct(model, n, rule=rule, root_rule=jz.root.minimum_visits(rule, least), stop=stop, capacity=500)

    return Engine(GAME, programs(GAME, search, search))
