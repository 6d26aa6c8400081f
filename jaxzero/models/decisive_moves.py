"""Decisive moves: a model that sees at every position that it evaluates whether a move wins at once.

Without it, a search learns of such a move only when it tries it. Where the network gives the opponent's winning move a
prior of 1 % or less, some hundred simulations may not try it, and the search walks into it: in Othello one can lose all
stones in the opening that way. Teytaud and Teytaud 2010, "On the huge benefit of decisive moves in Monte-Carlo tree
search algorithms", play such moves at once in the tree and in playouts.

Here a position with such a move has the value of a win as soon as it is evaluated, and the move is the first to be
followed. With `avoid_proven` the second visit proves it. Answers that come from elsewhere (`jaxzero.options.ask`) are
taken as they are: below the root no decisive moves are seen then.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.models.game_rules import told
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["with_decisive_moves"]

AHEAD = 10.0  # above the highest other logit, in nats


def with_decisive_moves(game: Game, model: Model) -> Model:
    """The same model, where the value of a position with a decisive move is 1, a win, and the move's logit the highest.

    `models.over_devices` goes around it, not inside.

    Args:
        game: of two players, whose `Game.decisive` names such moves.
        model: of its rules, with `move` and `evaluate`, as `models.perfect` and `models.rollout` make it.

    Raises:
        ValueError: a game that names none, is not for two players, or lists outcomes; a model without `move` and
            `evaluate`, like learned ones; while tracing, a `decisive` that returns another shape or type.

    >>> import jax
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> game = game._replace(decisive=games.decisive_by_trying(game))
    >>> blind = models.perfect(game, lambda params, obs: (jnp.zeros((len(obs), 9)), jnp.zeros(len(obs))))
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> states = jax.vmap(game.init)(keys)
    >>> for action in (0, 3, 1, 4, 8):  # the last one should have been 2: the other one wins by 5
    ...     states = jax.vmap(game.step)(states, jnp.full(1, action), keys)
    >>> [float(one.root((), keys, states)[0].value[0]) for one in (blind, with_decisive_moves(game, blind))]
    [0.0, 1.0]
    """
    check_game("with_decisive_moves", game)
    if not callable(game.decisive):
        raise ValueError(
            f"with_decisive_moves: {game.id} names no decisive moves, its `decisive` is {game.decisive!r}. Give "
            "game._replace(decisive=games.decisive_by_trying(game))."
        )
    if game.num_players != 2 or game.outcomes is not None:
        chance = "" if game.outcomes is None else " and lists outcomes of chance"
        raise ValueError(
            f"with_decisive_moves: {game.id} has {game.num_players} player(s){chance}, but this needs two players and "
            "no chance. Leave it out."
        )
    if not isinstance(model, Model) or model.move is None or model.evaluate is None:
        raise ValueError(
            f"with_decisive_moves({game.id!r}, model): model is a {type(model).__name__} without `move` and "
            "`evaluate`, so its positions are unknown before they are evaluated. Give one of the game's rules, like "
            "models.perfect(game, network), and put what wraps a model, like with_legal_slots, around the result."
        )
    move, evaluated = model.move, model.evaluate

    def seen(state: State, logits: Float[Array, "B A"], value: Float[Array, "B"]) -> tuple[Array, Array]:
        wins = told(game, "decisive", state) & told(game, "legal", state)
        first = jnp.max(logits, -1, keepdims=True) + AHEAD
        return jnp.where(wins, first, logits), jnp.where(wins.any(-1), 1.0, value)

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        step, embedding = model.root(params, keys, state)
        logits, value = seen(state, step.prior_logits, step.value)
        return step._replace(prior_logits=logits, value=value), embedding

    def evaluate(params: Params, keys: Keys, position: State) -> tuple[Array, Array]:
        return seen(position, *evaluated(params, keys, position))

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        found, position, embedding = move(params, keys, action, embedding)
        logits, value = evaluate(params, keys, position)
        over = False if found.terminal is None else found.terminal
        return found._replace(prior_logits=logits, value=jnp.where(over, 0.0, value)), embedding

    return Model(root, step, move, evaluate)
