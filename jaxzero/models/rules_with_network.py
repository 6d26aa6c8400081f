"""A game's rules with a network: AlphaZero's model."""

from jaxtyping import Array, Float

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.models.game_rules import Network, check_answer, told, with_rules
from jaxzero.types import Keys, Model, Params, State

__all__ = ["perfect"]


def perfect(game: Game, network: Network, discount: float | Float[Array, ""] = 1.0) -> Model:
    """The game's rules, and a network that says how good a position is (AlphaZero, Silver et al. 2018).

    `Model.root` takes the game's unpacked states; the embeddings it gives the tree are packed. The value of a
    finished game is 0, because its result was paid as the reward of the last step. A game that a limit ended counts as
    a draw, also with value 0 (to look beyond the limit, use `environments.without_limit`). In a game of chance an edge
    keeps the one outcome that was drawn when it was expanded; `jaxzero.models.chance` keeps several.

    Args:
        game: the rules.
        network: `(params, observation [B, ...]) -> (logits [B, A], value)`. With one or two players the value is
            `[B]`, for the player to move; with more it is `[B, P]`, entry p for player p.
        discount: γ, 1 for board games.

    Raises:
        ValueError: something else in place of the game or the network; while tracing, functions of the game that
            answer in other shapes than its record says, and a network that returns no pair, or other shapes; names
            the field.

    >>> import jax, jax.numpy as jnp
    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = perfect(game, lambda params, obs: (jnp.zeros((len(obs), 9)), jnp.zeros(len(obs))))
    >>> keys = jax.random.split(jax.random.key(0), 5)
    >>> root, embedding = model.root(None, keys, jax.vmap(game.init)(keys))
    >>> child, embedding = model.step(None, keys, jnp.zeros(5, jnp.int32), embedding)
    >>> child.legal.sum(axis=1).tolist()
    [8, 8, 8, 8, 8]
    """
    check_game("perfect", game)
    if not callable(network):
        is_pair = isinstance(network, tuple)
        pair = ": nets return a pair, net, params = nets.mlp(...); pass params to the policy" if is_pair else ""
        raise ValueError(
            f"perfect({game.id!r}, network): network is a {type(network).__name__}{pair}. Give a function (params, "
            "observation) -> (logits, value)."
        )

    def evaluate(params: Params, keys: Keys, state: State) -> tuple[Array, Array]:
        del keys
        observation = told(game, "observe", state)
        answer = network(params, observation)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise ValueError(
                f"perfect({game.id!r}, network): the network returned a {type(answer).__name__}. Return a pair, "
                "(logits, value)."
            )
        logits, value = answer
        check_answer(game, "logits", logits, "[B, A]", (len(observation), game.num_actions))
        players = (game.num_players,) if game.num_players > 2 else ()
        check_answer(game, "value", value, "[B, P]" if players else "[B]", (len(observation), *players))
        return logits, value

    return with_rules(game, evaluate, discount)
