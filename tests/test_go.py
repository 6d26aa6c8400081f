"""Go: the rules against OpenSpiel's and pgx's move for move, against worked positions, and the light playouts."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games import go_board, go_moves, go_playouts

KEY = jax.random.key(0)


@functools.cache
def random_games(size: int, batch: int, length: int, seed: int = 0, light: bool = False, **settings) -> dict:
    """Arrays [T, B, ...] of random games; `light`: that leave their own eyes alone, so that boards fill up."""
    game = games.go(size, **settings)
    weigh = games.keep_eyes(size) if light else lambda state, legal: legal

    def ply(state, key):
        legal = jax.vmap(game.legal)(state)
        weights = jax.vmap(weigh)(state, legal)
        # Passes seldom, or random games would end at once.
        logits = jnp.where(weights, jnp.where(jnp.arange(size**2 + 1) < size**2, 0.0, -3.0), -jnp.inf)
        action = jnp.argmax(logits + jax.random.gumbel(key, logits.shape), axis=1)
        after = jax.vmap(game.step, (0, 0, None))(state, action, key)
        ko = state.ko
        return after, {
            "legal": legal,
            "action": action,
            "to_play": jax.vmap(game.to_play)(state),
            "terminal": jax.vmap(game.terminal)(state),
            "rewards": jax.vmap(game.rewards)(after),
            "observation": jax.vmap(game.observe)(state),
            "ko": ko,
        }

    @jax.jit
    def play(key):
        state = jax.vmap(game.init)(jax.random.split(key, batch))
        return jax.lax.scan(ply, state, jax.random.split(key, length))[1]

    return jax.tree.map(np.asarray, play(jax.random.key(seed)))


def against_open_spiel(size: int, lines: dict, komi: float) -> dict[str, int]:
    """Replays games there; counts positions, disagreements, and games that a repetition ended."""
    pyspiel = pytest.importorskip("pyspiel")
    rules = pyspiel.load_game(f"go(board_size={size},komi={komi})")
    found = dict.fromkeys(["positions", "wrong", "repetitions", "kos", "finished", "by_limit"], 0)
    for i in range(lines["action"].shape[1]):
        state, t = rules.new_initial_state(), 0
        boards = {board_of(state, size)}
        while not state.is_terminal():
            found["positions"] += 1
            found["kos"] += bool(lines["ko"][t, i] >= 0)
            found["wrong"] += bool(lines["terminal"][t, i]) or state.current_player() != lines["to_play"][t, i]
            found["wrong"] += sorted(open_spiel_actions(state, size)) != np.flatnonzero(lines["legal"][t, i]).tolist()
            found["wrong"] += board_of(state, size) != our_board(lines, t, i)
            state.apply_action(int(lines["action"][t, i]))
            t += 1
            if lines["action"][t - 1, i] < size * size:
                before, boards = len(boards), boards | {board_of(state, size)}
                if len(boards) == before:  # positional superko: the game is over there, and goes on here
                    break
        else:
            found["finished"] += 1
            found["by_limit"] += t == 2 * size * size
            found["wrong"] += not lines["terminal"][t, i]
            found["wrong"] += lines["rewards"][:t, i].sum(0).tolist() != state.returns()
            found["wrong"] += bool(lines["rewards"][t:, i].any())
            continue
        found["repetitions"] += 1
        found["wrong"] += not state.is_terminal() or bool(lines["terminal"][t - 1, i])
    return found


def open_spiel_actions(state, size):
    return state.legal_actions()


def board_of(state, size: int) -> bytes:
    planes = np.array(state.observation_tensor(0)).reshape(-1, size, size)
    return (planes[0] - planes[1]).astype(np.int8).tobytes()


def our_board(lines: dict, t: int, i: int) -> bytes:
    mine, theirs, black = lines["observation"][t, i, ..., [0, 1, 7]]
    return ((mine - theirs) * (2 * black - 1)).astype(np.int8).tobytes()
