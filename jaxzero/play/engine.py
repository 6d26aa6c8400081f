"""An engine: one game on a board, and a search that keeps its tree from move to move.

The tree is kept when a move is made, and may grow while the opponent thinks. All thinking is done in short chunks of
simulations of one compiled program, so that it can end at any time: by a number of simulations, by the clock, or by a
new request.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.games.game import Game
from jaxzero.games.go_game.rules import GoState, turned
from jaxzero.play.analysis import LINE, Report, reported
from jaxzero.play.engine_programs import FOREVER, Programs, programs
from jaxzero.play.notation import side_of
from jaxzero.search.node_storage import unpack_stats
from jaxzero.search.tree import Tree
from jaxzero.types import Params

__all__ = ["Engine"]

CHUNK = 0.02  # seconds of thinking between two checks for requests
FURTHER = 2**31  # a number that no ply has: the keys of further games branch off there

_turned = jax.jit(jax.vmap(turned, (0, None)))


class Engine:
    """A position, its history, and a search of it.

    Attributes:
        game: its rules, compiled.
        programs: what it has compiled; see `another`.
        state: the position, a batch of one.
        first: the player who moved first.
        moves: the actions so far.
        movers: who made each of them, 0: the player who moved first; in turn, except after `turn_to`.
        number: of the game, from 0. Its dice and deals follow from the seed, this number and the ply: they are the same
            after `undo` and when the game is replayed, and others in the next game.

    Args:
        game: a `jaxzero.games.Game` of two or more players.
        build: `(num_simulations, stop) -> policy`, like `lambda n, stop: jaxzero.uct(model, n, stop=stop,
            capacity=10_000)`: give a capacity, and actions by most visits. Or `Programs`, made or of another engine.
        params: handed to the policy.
        seed: everything random follows from it, and from the times at which thinking was interrupted.
        number: of the first game.
    """

    def __init__(
        self,
        game: Game,
        build: Callable[[int, Any], Callable] | Programs,
        params: Params = (),
        seed: int = 0,
        number: int = 0,
    ):
        if game.num_players < 2:
            raise ValueError(f"Engine: {game.id} has {game.num_players} player(s); it needs a game of two or more.")
        self.programs = build if isinstance(build, Programs) else programs(game, build)
        self.game, self._params, self._seed = self.programs.game, params, seed
        self._tree: Tree | None = None
        self._speed = 100.0  # simulations per second, a guess that thinking corrects
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._undo: list[Any] = []
        self._in_turn: Any = None  # the position as it was before `turn_to`
        self.clear(number=number)

    def __repr__(self) -> str:
        """In a line, for a notebook's cell."""
        return f"<Engine: {self.game.id} after {len(self.moves)} move{'s' * (len(self.moves) != 1)}>"

    def another(self, seed: int = 0, number: int = 0) -> "Engine":
        """An engine at the beginning of a game of its own, which shares the compiled programs of this one."""
        return Engine(self.game, self.programs, self._params, seed, number)

    # --- the game ----------------------------------------------------------------------------------------------------

    def clear(self, keep_memory: bool = True, number: int | None = None) -> None:
        """Begin a new game.

        Args:
            keep_memory: keep the memory of the search tree for the next search. An idle engine needs none.
            number: of the game; None: the next one. With the number of an earlier game, its dice fall again.
        """
        self.rest()
        self.number = self.number + 1 if number is None else number
        self.state = self.programs.init(self._keys(0))
        self.first = int(self.game.to_play(self._one()))
        self.moves: list[int] = []
        self.movers: list[int] = []
        self._paid = [np.zeros(self.game.num_players)]
        self._undo.clear()
        self._in_turn = None
        self._forget()
        if not keep_memory:
            self._tree = None

    def play(self, action: int) -> None:
        """Make a move.

        Raises:
            ValueError: it is not legal, or the game is over.
        """
        self.rest()
        if not (0 <= action < self.game.num_actions and self.legal()[action]):
            raise ValueError(f"action {action} is not legal here")
        played = jnp.full(1, action, jnp.int32)
        after = self.programs.step(self.state, played, self._keys(len(self.moves) + 1))
        tree = None if self._tree is None else self.programs.advance(self._tree, played)
        paid = self._paid[-1] + np.roll(np.asarray(self.game.rewards(self.programs.one(after))), -self.first)
        jax.block_until_ready((after, tree))  # a device that fails does so here, and the position stays what it is
        self._undo.append(self.state if self._in_turn is None else self._in_turn)
        self.movers.append(self.to_move())
        self.moves.append(action)
        self.state, self._tree, self._in_turn = after, tree, None
        self._paid.append(paid)

    def turn_to(self, player: int) -> None:
        """Make it a player's turn until a move is made, even after the end of the game. Only for Go by `games.go`.

        Args:
            player: 0: who moved first; 1: the other.

        Raises:
            ValueError: the game knows no moves out of turn, or after its end.
        """
        self.turn_back()
        if self.to_move() == player and not self.over():
            return
        if not isinstance(self.state, GoState):
            raise ValueError("the game is over" if self.over() else "it is the other's turn")
        self._in_turn, self.state = self.state, _turned(self.state, self.first if player == 0 else 1 - self.first)
        self._forget()

    def turn_back(self) -> None:
        """Give the turn back to the player who has it by the rules, if no move was made since `turn_to`."""
        self.rest()
        if self._in_turn is not None:
            self.state, self._in_turn = self._in_turn, None
            self._forget()

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            ValueError: there is none.
        """
        self.rest()
        if not self.moves:
            raise ValueError("there is no move to take back")
        self.moves.pop()
        self.movers.pop()
        self._paid.pop()
        self.state, self._in_turn = self._undo.pop(), None
        self._forget()

    def go_to(self, moves: list[int], movers: list[int] | None = None) -> None:
        """Go to the position after these moves: takes differing moves back, and makes the missing ones.

        Args:
            moves: actions.
            movers: who makes each of them; None: by turns.

        Raises:
            ValueError: one is not legal; those before it are made.
        """
        self.turn_back()
        while self.moves != moves[: len(self.moves)] or self.movers != (movers or self.movers)[: len(self.movers)]:
            self.undo()
        for ply in range(len(self.moves), len(moves)):
            if movers is not None:
                self.turn_to(movers[ply])
            self.play(moves[ply])

    def legal(self) -> np.ndarray:
        """Which actions are legal, bool `[A]`."""
        return np.asarray(self.game.legal(self._one()))

    def over(self) -> bool:
        """Whether the game has ended."""
        return bool(self.game.terminal(self._one()))

    def result(self) -> float:
        """What the last move paid the player who moved first."""
        return float(np.asarray(self.game.rewards(self._one()))[self.first])

    def paid(self) -> list[float]:
        """What each player was paid so far, in the order of moving."""
        return [float(x) for x in self._paid[-1]]

    def to_move(self) -> int:
        """Whose turn it is in the order of moving. 0: the player who moved first; 1: the next one."""
        return side_of(self.game, int(self.game.to_play(self._one())), self.first)

    def position(self) -> Any:
        """The position by itself, without a batch."""
        return self._one()

    # --- thinking ----------------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile everything, so that no clock has to wait for it."""
        jax.block_until_ready([getattr(self.game, name)(self._one()) for name in ("observe", "legal", "rewards")])
        played = jnp.full(1, int(np.argmax(self.legal())), jnp.int32)
        jax.block_until_ready(self.programs.step(self.state, played, self._keys(1)))
        if self.over():
            return
        self._think(1, None, threading.Event())
        jax.block_until_ready(self.programs.known(self._tree))
        if self.programs.playable is not None:
            jax.block_until_ready(self.programs.playable(self._one(), np.full(LINE, -1, np.int32)))
        jax.block_until_ready(self.programs.advance(self._tree, jnp.full(1, -1, jnp.int32)))
        jax.block_until_ready(self.programs.forgotten(self._tree))

    def think(
        self,
        simulations: int | None = None,
        seconds: float | None = None,
        look: Callable[["Engine"], Any] | None = None,
        least: int = 0,
    ) -> int:
        """Search, and return the most visited move.

        Args:
            simulations: how many to add to those in the tree; None: as time allows.
            seconds: the most time to use; None: as the simulations take.
            look: called now and then with the engine; returns True to stop.
            least: visits that each legal move gets first, earlier ones included: for analysis, not for strength.
                Programs that were made without `spread` ignore it.

        Raises:
            ValueError: the game is over, or neither limit was given.
        """
        self.rest()
        if self.over():
            raise ValueError("the game is over")
        if simulations is None and seconds is None:
            raise ValueError("think: give simulations, seconds or both.")
        deadline = None if seconds is None else time.monotonic() + seconds
        return self._think(simulations, deadline, threading.Event(), look, least)

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
        tree = self.tree()
        if tree is None:
            return Report(0, 0.0, ())
        report, playable = reported(jax.device_get(self.programs.known(tree)), most=most), self.programs.playable
        if playable is None:
            return report
        position = self._one()

        def cut(line: tuple[int, ...]) -> tuple[int, ...]:
            padded = np.int32([*line, *[-1] * (LINE - len(line))])
            return line[: int(playable(position, padded))]

        candidates = (one._replace(line=cut(one.line)) if len(one.line) > 1 else one for one in report.candidates)
        return report._replace(candidates=tuple(candidates))

    def tree(self) -> Tree | None:
        """The search tree of the position, a batch of one; None: nothing was searched yet, or nothing was kept."""
        tree = self._tree
        return None if tree is None or int(tree.size[0]) == 0 else tree

    def _think(self, simulations, deadline, stop: threading.Event, look=None, least=0) -> int:
        key = self._keys(len(self.moves))
        if self._tree is None:
            self._tree = self.programs.empty(self._params, key, self.state)
        made, size, slowest = 0, int(self._tree.size[0]), 0.0
        before = self._root_visits() if size else 0
        action = 0
        while True:
            left = FOREVER if simulations is None else simulations - made
            # The last search may have been much faster, in an endgame or in a full tree. So begin with small chunks.
            chunk = max(1, min(left, int(self._speed * (CHUNK if slowest else CHUNK / 8))))
            began = time.monotonic()
            most = jnp.int32(before + made + chunk)
            out = self.programs.more(self._params, key, self.state, self._tree, most, jnp.int32(least))
            action = int(out.action[0])
            now = time.monotonic()
            self._tree, made = out.tree, made + chunk
            spent = max(now - began, 1e-6)
            speed = chunk / spent  # a lower speed counts at once, a higher one gradually
            self._speed = min(speed, 0.5 * (self._speed + speed))
            slowest = max(slowest, spent) if slowest else 1e-6  # the first call may have compiled
            enough = look is not None and look(self) is True
            if enough or stop.is_set() or made >= (FOREVER if simulations is None else simulations):
                return action
            if deadline is not None and time.monotonic() + slowest > deadline:
                return action

    def _root_visits(self) -> int:
        # As `total_visits` counts them. The root's edges may have fewer: in a full tree walks ended at the root.
        return int(unpack_stats(self._tree.stats[:, 0]).visits[0]) - 1

    def _forget(self) -> None:
        if self._tree is not None:
            self._tree = self.programs.forgotten(self._tree)

    def _keys(self, ply: int) -> jax.Array:
        key = jax.random.key(self._seed)
        if self.number:  # the first game has the seed's own keys
            key = jax.random.fold_in(jax.random.fold_in(key, FURTHER), self.number)
        return jax.random.split(jax.random.fold_in(key, ply), 1)

    def _one(self) -> Any:
        return self.programs.one(self.state)
