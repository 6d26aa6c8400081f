"""An engine: one game on a board, and a search of its position that goes on from move to move.

The tree is kept when a move is made, and may grow while the opponent thinks. All thinking is done in short chunks of
simulations of one compiled program, so that it ends when it is told to: by a number of simulations, by the clock, or by
somebody who has something to say.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.games.record import Game
from jaxzero.mcts.anytime import total_visits
from jaxzero.mcts.reuse import advance
from jaxzero.mcts.summary import principal_variation, summary
from jaxzero.mcts.tree import Tree
from jaxzero.types import Params

__all__ = ["Candidate", "Engine", "Report"]

CHUNK = 0.02  # seconds of thinking between two looks at who has something to say
LINE = 12  # plies of a principal variation
FOREVER = 2**22  # simulations in one call; `stop` ends it


class Candidate(NamedTuple):
    """What the search thinks of one move.

    Attributes:
        action: the move.
        visits: simulations through it.
        value: mean return for the player to move, between −1 and 1.
        prior: what the model thought of it; 0 where the rule asks for no prior.
        line: the play that is expected, this move first.
    """

    action: int
    visits: int
    value: float
    prior: float
    line: tuple[int, ...]


class Report(NamedTuple):
    """What is known of the position.

    Attributes:
        visits: of the root: simulations, those kept from earlier moves among them.
        value: of the position for the player to move, between −1 and 1.
        candidates: the moves that were visited, the best first.
    """

    visits: int
    value: float
    candidates: tuple[Candidate, ...]


class Engine:
    """A position, its history, and a search of it.

    Attributes:
        game: its rules.
        state: the position, a batch of one.
        first: the player who moved first.
        moves: the actions so far.

    Args:
        game: a `jaxzero.games.Game` of two players.
        build: `(num_simulations, stop) -> policy`, like `lambda n, stop: jaxzero.uct(model, n, stop=stop,
            capacity=10_000)`: give a capacity, and actions by most visits.
        params: handed to the policy.
        seed: everything random follows from it, and from when thinking was interrupted.
    """

    def __init__(self, game: Game, build: Callable[[int, Any], Callable], params: Params = (), seed: int = 0):
        if game.num_players != 2:
            raise ValueError(f"Engine: {game.id} has {game.num_players} player(s); it needs a game of two.")
        self.game, self._params, self._seed = game, params, seed
        self._step = jax.jit(jax.vmap(game.step))
        self._init = jax.jit(jax.vmap(game.init))
        self._empty = jax.jit(lambda params, keys, state: _forgotten(build(1, None)(params, keys, state).tree))
        self._more = jax.jit(
            lambda params, keys, state, tree, most: build(FOREVER, total_visits(most))(params, keys, state, tree)
        )
        self._advance = jax.jit(advance)
        self._forgotten = jax.jit(_forgotten)
        self._lines = jax.jit(_lines)
        self._tree: Tree | None = None
        self._speed = 100.0  # simulations per second, a guess that thinking corrects
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._undo: list[Any] = []
        self.clear()

    # --- the game ----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """The beginning of a game."""
        self.rest()
        self.state = self._init(self._keys(0))
        self.first = int(self.game.to_play(self._one()))
        self.moves: list[int] = []
        self._undo.clear()
        self._forget()

    def play(self, action: int) -> None:
        """Make a move.

        Raises:
            ValueError: it is not legal, or the game is over.
        """
        self.rest()
        if not (0 <= action < self.game.num_actions and self.legal()[action]):
            raise ValueError(f"action {action} is not legal here")
        self._undo.append(self.state)
        self.moves.append(action)
        played = jnp.full(1, action, jnp.int32)
        self.state = self._step(self.state, played, self._keys(len(self.moves)))
        if self._tree is not None:
            self._tree = self._advance(self._tree, played)

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            ValueError: there is none.
        """
        self.rest()
        if not self.moves:
            raise ValueError("there is no move to take back")
        self.moves.pop()
        self.state = self._undo.pop()
        self._forget()

    def legal(self) -> np.ndarray:
        """Which actions are legal, bool `[A]`."""
        return np.asarray(self.game.legal(self._one()))

    def over(self) -> bool:
        """Whether the game has ended."""
        return bool(self.game.terminal(self._one()))

    def result(self) -> float:
        """What the last move paid the player who moved first."""
        return float(np.asarray(self.game.rewards(self._one()))[self.first])

    def to_move(self) -> int:
        """0: the player who moved first; 1: the other."""
        return int(int(self.game.to_play(self._one())) != self.first)

    def position(self) -> Any:
        """The position by itself, without a batch."""
        return self._one()

    # --- thinking ----------------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile everything, so that no clock has to wait for it."""
        if self.over():
            return
        self._think(1, None, threading.Event())
        jax.block_until_ready(self._lines(self._tree))
        jax.block_until_ready(self._advance(self._tree, jnp.full(1, -1, jnp.int32)))
        jax.block_until_ready(self._forgotten(self._tree))

    def think(
        self,
        simulations: int | None = None,
        seconds: float | None = None,
        look: Callable[["Engine"], Any] | None = None,
    ) -> int:
        """Search, and answer the move that was visited most.

        Args:
            simulations: how many to make now, beside those that the tree has brought along; None: as time allows.
            seconds: how long at most; None: as the simulations take.
            look: called now and then on the way, with the engine.

        Raises:
            ValueError: the game is over, or neither limit was given.
        """
        self.rest()
        if self.over():
            raise ValueError("the game is over")
        if simulations is None and seconds is None:
            raise ValueError("think: give simulations, seconds or both.")
        deadline = None if seconds is None else time.monotonic() + seconds
        return self._think(simulations, deadline, threading.Event(), look)

    def ponder(self, look: Callable[["Engine"], Any] | None = None) -> None:
        """Go on thinking in the background until the next call of anything else."""
        self.rest()
        if not self.over():
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._think, args=(FOREVER, None, self._stop, look), daemon=True, name="pondering"
            )
            self._thread.start()

    def rest(self) -> None:
        """Stop thinking in the background; returns when that has ended, within a chunk."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._stop.set()
            self._thread.join()
            self._thread = None

    def report(self, most: int = 1_000) -> Report:
        """What the search thinks so far, of its best moves. Before any thinking: nothing."""
        tree = self._tree
        if tree is None or int(tree.size[0]) == 0:
            return Report(0, 0.0, ())
        found, first, line = jax.device_get(self._lines(tree))
        visits, values, prior = found.visits[0], found.qvalues[0], np.asarray(tree.prior[0, 0], np.float32)
        prior = prior if abs(prior.sum() - 1) < 0.05 else np.zeros_like(prior)  # UCB1 stores other numbers there
        order = sorted(range(len(visits)), key=lambda a: (a != first[0], -visits[a], -values[a]))
        candidates = tuple(
            Candidate(a, int(visits[a]), float(values[a]), float(prior[a]), _after(a, line[0]))
            for a in order[:most]
            if visits[a]
        )
        return Report(int(visits.sum()), float(found.value[0]), candidates)

    def _think(self, simulations, deadline, stop: threading.Event, look=None) -> int:
        key = self._keys(len(self.moves))
        if self._tree is None:
            self._tree = self._empty(self._params, key, self.state)
        made, size, slowest = 0, int(self._tree.size[0]), 0.0
        before = self._root_visits() if size else 0
        action = 0
        while True:
            left = FOREVER if simulations is None else simulations - made
            chunk = max(1, min(left, int(self._speed * CHUNK)))
            began = time.monotonic()
            out = self._more(self._params, key, self.state, self._tree, jnp.int32(before + made + chunk))
            action = int(out.action[0])
            now = time.monotonic()
            self._tree, made = out.tree, made + chunk
            spent = max(now - began, 1e-6)
            if slowest:  # the first call may have compiled
                self._speed = 0.5 * self._speed + 0.5 * chunk / spent
            slowest = max(slowest, spent) if slowest else 1e-6
            if look is not None:
                look(self)
            if stop.is_set() or made >= (FOREVER if simulations is None else simulations):
                return action
            if deadline is not None and time.monotonic() + slowest > deadline:
                return action

    def _root_visits(self) -> int:
        return int(np.asarray(self._lines(self._tree)[0].visits).sum())

    def _forget(self) -> None:
        if self._tree is not None:
            self._tree = self._forgotten(self._tree)

    def _keys(self, ply: int) -> jax.Array:
        return jax.random.split(jax.random.fold_in(jax.random.key(self._seed), ply), 1)

    def _one(self) -> Any:
        return jax.tree.map(lambda x: x[0], self.state)


def _forgotten(tree: Tree) -> Tree:
    """A tree of the same shapes, of which nothing is kept."""
    return advance(tree, jnp.full(1, -1, jnp.int32), jnp.ones(1, jnp.bool_))


def _lines(tree: Tree) -> tuple[Any, jax.Array, jax.Array]:
    line = principal_variation(tree, LINE)
    return summary(tree), line[:, 0], line


def _after(action: int, line: np.ndarray) -> tuple[int, ...]:
    """The expected line, of the best move; of the others only the move."""
    return tuple(int(a) for a in line if a >= 0) if len(line) and line[0] == action else (action,)
