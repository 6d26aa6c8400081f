"""Elo ratings from results, and a sequential test (SPRT) of which of two players is stronger.

Plain NumPy on the host, because the data are small. Elo is logistic: a player who is stronger by d takes
1 / (1 + 10^(-d / 400)) of the points, a draw being half a win (Elo 1978, "The Rating of Chessplayers").
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Ratings", "Sprt", "elo", "expected_share", "log_likelihood_ratio", "ratings", "sprt"]

SCALE = 400 / math.log(10)  # Elo per unit of log odds


def elo(share: float) -> float:
    """The difference in Elo for which this share of the points is expected; infinite for all and for none.

    >>> round(elo(0.75), 1), elo(0.5), elo(0.0)
    (190.8, 0.0, -inf)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"elo({share}): a share of the points lies between 0 and 1.")
    return math.copysign(math.inf, share - 0.5) if share in (0, 1) else SCALE * math.log(share / (1 - share))


def expected_share(difference: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
    """The expected share of the points of a player who is stronger by this much Elo: the inverse of `elo`.

    >>> round(float(expected_share(200)), 3)
    0.76
    """
    return 0.5 * (1 + np.tanh(np.asarray(difference, np.float64) / (2 * SCALE)))  # no overflow, however far apart


# ------------------------------------------------------------------------------------------------------------ ratings
class Ratings(NamedTuple):
    """Ratings of a tournament's players, in the order in which they were given.

    Attributes:
        names: the players.
        elo: the ratings.
        low: the lower end of the interval, which is that of the difference to the anchor; the anchor's has no width.
        high: the upper end.
        games: how many games each has played.
        points: the points of each, a draw being half a point.
    """

    names: tuple[str, ...]
    elo: Float[np.ndarray, "players"]
    low: Float[np.ndarray, "players"]
    high: Float[np.ndarray, "players"]
    games: Float[np.ndarray, "players"]
    points: Float[np.ndarray, "players"]


def ratings(
    names: Sequence[str],
    results: Int[np.ndarray, "players players 3"],
    anchor: str | None = None,
    rating: float = 0.0,
    prior: float = 1.0,
    z: float = 1.96,
) -> Ratings:
    """Maximum-likelihood Elo ratings from pairwise results (Bradley & Terry 1952; found by Newton's method).

    The intervals come from the observed information, with the anchor's row and column removed. They model a game as one
    coin toss, so they are wider than necessary where there are draws.

    A player who has won everything has no finite rating. So for each pair of players who met, `prior` drawn games are
    added. With one, each side has half a win more, which also removes the log odds' bias of order 1 / games (Haldane
    1956; Anscombe 1956; for two players it is Firth's correction, 1993).

    Args:
        names: the players.
        results: `results[i, j]` are wins, draws and losses of player i against player j. Further games of the two may
            be in `results[j, i]`, as player j sees them.
        anchor: the player whose rating is given; None: the first player.
        rating: the anchor's rating.
        prior: drawn games added to each pairing that was played, at least 0.001 for the intervals to mean something;
            or 0: the plain maximum of the likelihood.
        z: half the interval's width in standard errors; 1.96 for 95 %.

    Raises:
        ValueError: results of another shape, negative, or of a player with themselves; names that repeat; an anchor
            that does not play; players whom no chain of games joins; prior=0 where that has no finite maximum.

    >>> results = np.zeros((3, 3, 3), int)
    >>> results[0, 1], results[1, 2] = (30, 10, 60), (20, 30, 50)
    >>> found = ratings(["a", "b", "c"], results, anchor="a", rating=1000)
    >>> found.elo.round().tolist(), found.low.round().tolist()
    ([1000.0, 1106.0, 1213.0], [1000.0, 1035.0, 1112.0])
    """
    names = tuple(names)
    results = _checked(names, results)
    anchor = names[0] if anchor is None else anchor
    if anchor not in names:
        raise ValueError(f"ratings(anchor={anchor!r}): no such player. Choose one of {', '.join(names)}.")
    points = results @ (1, 0.5, 0) + (results @ (0, 0.5, 1)).T  # of the row's player against the column's
    games = points + points.T
    _check_finite(names, games, points, prior)
    total = (games.sum(1), points.sum(1))
    met = games > 0
    free = np.arange(len(names)) != names.index(anchor)
    strength, information = _most_likely(points + prior / 2 * met, free)
    error = np.zeros(len(names))
    error[free] = np.sqrt(np.diag(np.linalg.inv(information)))
    found = rating + SCALE * strength
    return Ratings(names, found, found - z * SCALE * error, found + z * SCALE * error, *total)


def _checked(names: tuple[str, ...], results: np.ndarray) -> np.ndarray:
    """The results as floats; raises a ValueError if they are not what `ratings` takes."""
    results, shape = np.asarray(results, np.float64), (len(names), len(names), 3)
    if not names or results.shape != shape:
        raise ValueError(
            f"ratings: results of shape {list(results.shape)} for {len(names)} players. Give (wins, draws, losses) for "
            f"every two of one player or more: {list(shape)}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"ratings: the names {', '.join(names)} repeat. Give each player a name of its own.")
    if not (np.isfinite(results).all() and (results >= 0).all()):
        raise ValueError("ratings: results count games: write 0 where there were none, never less.")
    if results[np.arange(len(names)), np.arange(len(names))].any():
        raise ValueError("ratings: a player met itself. Leave the diagonal 0.")
    return results


def _check_finite(names: tuple[str, ...], games: np.ndarray, points: np.ndarray, prior: float) -> None:
    """Raises a ValueError if some rating would be undetermined, or infinite (Ford 1957)."""
    if not (prior == 0 or 1e-3 <= prior < math.inf):
        raise ValueError(f"ratings(prior={prior:g}): give a number of games, 0 or at least 0.001, like 1.")
    joined = _reached(games > 0)[0]
    if not joined.all():
        one, other = ([name for name, its in zip(names, joined) if its == side] for side in (True, False))
        raise ValueError(
            f"ratings: no chain of games joins {', '.join(one)} with {', '.join(other)}, so they cannot be compared. "
            "Add games between the two groups, or rate them separately."
        )
    beaten = _reached(points > 0)
    if prior == 0 and not beaten.all():
        i = np.flatnonzero(~beaten.all(1))[0]
        others = ", ".join(name for name, its in zip(names, beaten[i]) if not its)
        raise ValueError(
            f"ratings(prior=0): {names[i]} took no point from {others}, directly or through others, so the most likely "
            "difference is infinite. Use prior=1."
        )


def _reached(edges: np.ndarray) -> np.ndarray:
    """Entry (i, j): whether a chain of edges leads from i to j."""
    reached = edges | np.eye(len(edges), dtype=bool)
    for _ in range(len(edges).bit_length()):
        reached = reached @ reached
    return reached


def _most_likely(points: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log strengths, 0 where not free, that make the points most likely; and the information on the free ones."""
    games = points + points.T
    likelihood = lambda s: -np.sum(points * np.logaddexp(0, s[None, :] - s[:, None]))

    def derivatives(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        share = expected_share(SCALE * (s[:, None] - s[None, :]))
        weight = games * share * share.T  # share.T is 1 - share, without its rounding error where that is tiny
        information = np.diag(weight.sum(1)) - weight
        return (points - games * share).sum(1)[free], information[free][:, free]

    strength = np.zeros(len(points))
    for _ in range(200):  # a concave function: each step goes up, the last few twice as many digits each
        slope, information = derivatives(strength)
        step = np.zeros(len(points))
        step[free] = np.linalg.solve(information, slope)
        here = likelihood(strength)
        while np.abs(step).max() > 1e-9 and not likelihood(strength + step) >= here:
            step /= 2
        strength = strength + step
        if np.abs(step).max() <= 1e-9:
            break
    return strength, derivatives(strength)[1]


# --------------------------------------------------------------------------------------------------------------- SPRT
class Sprt(NamedTuple):
    """Where a sequential test stands.

    Attributes:
        llr: the logarithm of the likelihood ratio, H1 to H0.
        lower: H0 is accepted at or below this.
        upper: H1 is accepted at or above this.
        verdict: what follows.
    """

    llr: float
    lower: float
    upper: float
    verdict: Literal["continue", "accept H0", "accept H1"]


def log_likelihood_ratio(pairs: Int[np.ndarray, "... 5"], elo0: float, elo1: float) -> Float[np.ndarray, "..."]:
    """How much likelier a difference of elo1 makes these results than one of elo0: the logarithm of the ratio.

    The generalised ratio (Li, Liu & Ying 2014) in its normal approximation, as tests of chess engines use it (Van den
    Bergh, "A practical introduction to the GSPRT"): with a pair's share x of its two points, and the shares s0 and s1
    expected under the hypotheses, N (mean(x) - (s0 + s1) / 2) (s1 - s0) / var(x).

    The variance of a few pairs may come out as next to nothing, and then one pair decides: in simulated tests of 0
    against 50 up to two verdicts in three were wrong. So it is taken about (s0 + s1) / 2, which is known, and with one
    pair more of each result; then error rates stay at alpha and beta (`tests/play/test_ratings.py`).
    """
    pairs = np.asarray(pairs, np.float64)
    share0, share1 = (float(expected_share(x)) for x in (elo0, elo1))
    distance = np.arange(5) / 4 - (share0 + share1) / 2
    variance = (pairs + 1) @ distance**2 / (pairs.sum(-1) + 5)
    return (pairs @ distance) * (share1 - share0) / variance


def sprt(
    pairs: Int[np.ndarray, "5"], elo0: float = 0.0, elo1: float = 20.0, alpha: float = 0.05, beta: float = 0.05
) -> Sprt:
    """Sequential probability ratio test (Wald 1945): is a player stronger than another by elo1, or by elo0 only?

    Look at it as often as you like while games are played: it is made for that, unlike an interval. What counts are
    pairs of games (one opening, colours swapped), for the two games of a pair depend on each other.

    Args:
        pairs: how many pairs brought the player 0, 1/2, 1, 3/2 and 2 points.
        elo0: H0, the difference to be ruled out.
        elo1: H1, the difference hoped for, above elo0.
        alpha: chance of accepting H1 where H0 holds.
        beta: chance of accepting H0 where H1 holds.

    Raises:
        ValueError: other than five counts; elo1 not above elo0; chances of error outside (0, 1/2).

    >>> sprt([2, 10, 40, 14, 4]).verdict
    'continue'
    >>> test = sprt([10, 60, 200, 80, 20])
    >>> round(test.llr, 2), round(test.lower, 2), round(test.upper, 2), test.verdict
    (3.03, -2.94, 2.94, 'accept H1')
    """
    counts = np.asarray(pairs)
    if counts.shape != (5,) or not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError(
            f"sprt: {np.asarray(pairs).tolist()} are not counts of pairs. Give five: the numbers of pairs with 0, 1/2, "
            "1, 3/2 and 2 points."
        )
    if not elo0 < elo1:
        raise ValueError(f"sprt(elo0={elo0:g}, elo1={elo1:g}): the hoped-for difference elo1 has to be above elo0.")
    for name, chance in (("alpha", alpha), ("beta", beta)):
        if not 0 < chance < 0.5:
            raise ValueError(f"sprt({name}={chance:g}): give a chance of error above 0 and below 0.5, like 0.05.")
    llr = float(log_likelihood_ratio(counts, elo0, elo1))
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    return Sprt(llr, lower, upper, "accept H1" if llr >= upper else "accept H0" if llr <= lower else "continue")
