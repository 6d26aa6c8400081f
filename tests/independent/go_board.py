"""Go for a protocol that lets anybody move at any time, in plain Python: written from the rules, without the code.

Stones are in a dictionary, and chains are found by walking. The ko that is forbidden is the opponent's, of the move
before: whoever moves elsewhere, or moves again, has ended it.
"""

import copy


class Board:
    """A position; points are `(row, column)` from the top, colours 1 and 2; None is a pass."""

    def __init__(self, size):
        self.size = size
        self.stones = {}
        self.ko = None  # (colour, point) that must not be played now
        self.turn, self.passes, self.over = 1, 0, False
        self.taken = {1: 0, 2: 0}  # stones of a colour that were captured
        self.history = []

    def beside(self, point):
        row, column = point
        around = (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)
        return [(r, c) for r, c in around if 0 <= r < self.size and 0 <= c < self.size]

    def chain(self, point):
        """The chain of a stone, and its liberties."""
        colour, found, liberties, left = self.stones[point], {point}, set(), [point]
        while left:
            for near in self.beside(left.pop()):
                if near not in self.stones:
                    liberties.add(near)
                elif self.stones[near] == colour and near not in found:
                    found.add(near)
                    left.append(near)
        return found, liberties

    def play(self, colour, point):
        """Makes a move; False: it is illegal, and nothing has changed."""
        before = copy.deepcopy({name: value for name, value in vars(self).items() if name != "history"})
        if self.over or colour != self.turn:
            self.passes = 0
        if not (point is None or self._put(colour, point)):
            vars(self).update(before)
            return False
        if point is None:
            self.ko = None
        self.passes = self.passes + 1 if point is None else 0
        self.over = self.passes == 2
        self.turn = 3 - colour
        self.history.append(before)
        return True

    def _put(self, colour, point):
        if point in self.stones or self.ko == (colour, point):
            return False
        self.stones[point] = colour
        captured = set()
        for near in self.beside(point):
            if self.stones.get(near) == 3 - colour:
                chain, liberties = self.chain(near)
                captured |= set() if liberties else chain
        for one in captured:
            del self.stones[one]
        chain, liberties = self.chain(point)
        if not liberties:
            return False
        retaken = len(captured) == 1 and len(chain) == 1 and liberties == captured
        self.ko = (3 - colour, captured.pop()) if retaken else None
        self.taken[3 - colour] += 1 if retaken else len(captured)
        return True

    def undo(self):
        vars(self).update(self.history.pop())

    def rows(self):
        return [[self.stones.get((row, column), 0) for column in range(self.size)] for row in range(self.size)]
