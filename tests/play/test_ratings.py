"""Ratings against closed forms and known strengths; the sequential test against its promised error rates."""

import math

import numpy as np
import pytest

from jaxzero.play.ratings import elo, expected_share, log_likelihood_ratio, ratings, sprt


def table(players, entries):
    results = np.zeros((players, players, 3))
    for (i, j), counts in entries.items():
        results[i, j] = counts
    return results


def tournament(rng, strengths, games, draws=0.0):
    """Results of a round robin between players of these ratings."""
    n = len(strengths)
    results = np.zeros((n, n, 3))
    for i in range(n):
        for j in range(i):
            share = expected_share(strengths[i] - strengths[j])
            half = draws * 2 * min(share, 1 - share)
            results[i, j] = rng.multinomial(games, [share - half / 2, half, 1 - share - half / 2])
    return results


def test_elo_and_its_inverse():
    assert elo(0.5) == 0 and elo(10 / 11) == pytest.approx(400) and elo(1 / 101) == pytest.approx(-800)
    assert elo(1.0) == math.inf and elo(0.0) == -math.inf
    differences = np.array([-1500.0, -20.0, 0.0, 3.0, 700.0])
    np.testing.assert_allclose([elo(x) for x in expected_share(differences)], differences, atol=1e-6)
    assert expected_share(1e9) == 1 and expected_share(-1e9) == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        elo(1.2)


@pytest.mark.parametrize("counts", [(30, 0, 70), (10, 60, 5), (0, 0, 1), (1, 0, 0)])
def test_two_players_have_a_closed_form(counts):
    games, points = sum(counts), counts[0] + counts[1] / 2
    for prior in (0, 1, 2.5):
        share = (points + prior / 2) / (games + prior)
        if 0 < share < 1:
            found = ratings(["b", "a"], table(2, {(0, 1): counts}), anchor="a", prior=prior)
            assert found.elo[0] == pytest.approx(400 * math.log10(share / (1 - share)))
            error = 400 / math.log(10) / math.sqrt((games + prior) * share * (1 - share))
            assert found.high[0] - found.elo[0] == pytest.approx(1.96 * error)
            assert found.elo[0] - found.low[0] == pytest.approx(1.96 * error)
            assert found.elo[1] == found.low[1] == found.high[1] == 0
            assert found.games.tolist() == [games, games] and found.points.tolist() == [points, games - points]


def test_a_chain_of_players_adds_up():
    # nobody else connects them, so each link is a match of two, and errors add like those of independent matches
    found = ratings(["a", "b", "c"], table(3, {(1, 0): (60, 20, 20), (1, 2): (10, 10, 80)}), prior=0)
    first, second = elo(0.7), elo(0.85)
    np.testing.assert_allclose(found.elo, [0, first, first + second])
    error = (400 / math.log(10)) * math.sqrt(1 / (100 * 0.7 * 0.3) + 1 / (100 * 0.85 * 0.15))
    assert found.high[2] - found.elo[2] == pytest.approx(1.96 * error)


def test_ratings_make_points_expected():
    results = tournament(np.random.default_rng(0), [0, 40, 300, -200, 900], 60, draws=0.4)
    found = ratings("abcde", results, prior=0)
    games = results.sum(2) + results.sum(2).T
    share = expected_share(found.elo[:, None] - found.elo[None, :])
    np.testing.assert_allclose((games * share).sum(1), found.points, atol=1e-8)  # the likelihood's slope is 0


def test_who_is_entered_first_plays_no_part():
    rng = np.random.default_rng(1)
    results = tournament(rng, [0, 100, -50], 40, draws=0.3)
    other = results.copy()
    other[0, 1], other[1, 0] = results[1, 0][::-1], 0
    halves = results / 2 + np.swapaxes(results, 0, 1)[..., ::-1] / 2
    for same in (other, halves):
        for got, expected in zip(ratings("abc", same)[1:], ratings("abc", results)[1:]):
            np.testing.assert_allclose(got, expected, atol=1e-8)


def test_players_may_be_listed_in_any_order():
    rng = np.random.default_rng(2)
    results = tournament(rng, [0, 120, -80, 200], 30, draws=0.2)
    straight = ratings("abcd", results, anchor="c", rating=1500)
    order = [2, 0, 3, 1]
    turned = ratings([*"cadb"], results[order][:, order], anchor="c", rating=1500)
    for field in ("elo", "low", "high", "games", "points"):
        np.testing.assert_allclose(getattr(turned, field), getattr(straight, field)[order], atol=1e-7)


def test_the_anchor_shifts_all_and_owns_the_interval():
    results = tournament(np.random.default_rng(3), [0, 120, -80, 200], 30)
    first, moved = ratings("abcd", results), ratings("abcd", results, rating=1000)
    for field in ("elo", "low", "high"):
        np.testing.assert_allclose(getattr(moved, field), getattr(first, field) + 1000)
    last = ratings("abcd", results, anchor="d", rating=-7)
    np.testing.assert_allclose(last.elo - last.elo[0], first.elo, atol=1e-7)  # differences do not depend on it
    assert last.low[3] == last.elo[3] == last.high[3] == -7 and last.high[0] > last.elo[0]
    # seen from either end, the interval of a difference is as wide
    assert last.high[0] - last.low[0] == pytest.approx(first.high[3] - first.low[3])


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng, truth = np.random.default_rng(4), np.array([0.0, -150.0, 60.0, 250.0])
    inside, inside_with_draws, errors = [], [], []
    for _ in range(500):
        found = ratings("abcd", tournament(rng, truth, 40))
        inside.append((found.low <= truth) & (truth <= found.high))
        errors.append(found.elo - truth)
        found = ratings("abcd", tournament(rng, truth, 40, draws=0.5))
        inside_with_draws.append((found.low <= truth) & (truth <= found.high))
    share = np.mean(inside, 0)[1:]
    assert (abs(share - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 500)).all(), share  # fails by chance once in 5,000 times
    assert (np.mean(inside_with_draws, 0)[1:] > share - 0.01).all()  # draws make them safer, never less so
    assert (abs(np.mean(errors, 0)) < 8).all()  # next to no bias


def test_who_wins_all_has_a_finite_rating_that_grows_with_the_games():
    short, long = (ratings("ab", table(2, {(0, 1): (n, 0, 0)})) for n in (4, 1_000_000))
    assert short.elo[1] == pytest.approx(-elo(4.5 / 5)) and long.elo[1] == pytest.approx(-elo(1_000_000.5 / 1_000_001))
    found = ratings("abc", table(3, {(0, 1): (20, 0, 0), (1, 2): (20, 0, 0), (0, 2): (20, 0, 0)}), anchor="b")
    assert np.isfinite([found.elo, found.low, found.high]).all() and found.elo[0] == pytest.approx(-found.elo[2])
    assert found.elo[0] > 400
    with pytest.raises(ValueError, match=r"prior=0\): b took no point from a, .*"):
        ratings("ab", table(2, {(0, 1): (4, 0, 0)}), prior=0)
    with pytest.raises(ValueError, match=r"c took no point from a, b, .*"):  # two groups, one above the other
        ratings("abcd", table(4, {(0, 1): (1, 0, 1), (2, 3): (1, 0, 1), (0, 2): (3, 0, 0)}), prior=0)


def test_players_who_cannot_be_compared_are_named():
    with pytest.raises(ValueError, match="joins a, c with b, d"):
        ratings("abcd", table(4, {(0, 2): (1, 0, 1), (3, 1): (0, 2, 0)}))
    with pytest.raises(ValueError, match="joins a with b, so"):
        ratings("ab", table(2, {}))


def test_one_player_has_the_anchors_rating():
    found = ratings(["me"], table(1, {}), rating=1200)
    assert found.elo.tolist() == found.low.tolist() == found.high.tolist() == [1200] and found.games.tolist() == [0]


@pytest.mark.parametrize("names, results, options, message", [
    ("ab", np.zeros((3, 3, 3)), {}, r"shape \[3, 3, 3\] for 2 players"),
    ("", np.zeros((0, 0, 3)), {}, "one player or more"),
    ("aa", table(2, {(0, 1): (1, 0, 1)}), {}, "repeat"),
    ("ab", table(2, {(0, 1): (1, 0, -1)}), {}, "never less"),
    ("ab", table(2, {(0, 1): (1, 0, math.nan)}), {}, "never less"),
    ("ab", table(2, {(0, 1): (1, 0, 1), (0, 0): (0, 1, 0)}), {}, "met itself"),
    ("ab", table(2, {(0, 1): (1, 0, 1)}), {"anchor": "c"}, "no such player. Choose one of a, b"),
    ("ab", table(2, {(0, 1): (1, 0, 1)}), {"prior": -1}, r"prior=-1\): give a number of games, 0 or at least 0.001"),
    ("ab", table(2, {(0, 1): (1, 0, 0)}), {"prior": 1e-300}, r"prior=1e-300\): give a number of games"),
    ("ab", table(2, {(0, 1): (1, 0, 0)}), {"prior": math.nan}, r"prior=nan\): give a number of games"),
    ("ab", table(2, {(0, 1): (1, 0, 0)}), {"prior": math.inf}, r"prior=inf\): give a number of games"),
])  # fmt: skip
def test_what_are_no_results_is_refused(names, results, options, message):
    with pytest.raises(ValueError, match=message):
        ratings(names, results, **options)


# --------------------------------------------------------------------------------------------------------------- SPRT
def test_the_ratio_is_the_formula():
    pairs, elo0, elo1 = np.array([300, 1500, 4100, 1700, 400]), 0.0, 10.0
    x = np.repeat(np.arange(5) / 4, pairs)
    s0, s1 = (1 / (1 + 10 ** (-e / 400)) for e in (elo0, elo1))
    plain = len(x) * (x.mean() - (s0 + s1) / 2) * (s1 - s0) / x.var()
    assert log_likelihood_ratio(pairs, elo0, elo1) == pytest.approx(plain, rel=0.01)  # many pairs: no correction left
    distance = np.concatenate([x, np.arange(5) / 4]) - (s0 + s1) / 2
    exact = plain * x.var() / np.mean(distance**2)
    assert log_likelihood_ratio(pairs, elo0, elo1) == pytest.approx(exact)
    # a test turned round: the other player's results, the negative differences
    assert log_likelihood_ratio(pairs[::-1], -elo1, -elo0) == pytest.approx(-exact)
    assert log_likelihood_ratio(np.zeros(5), elo0, elo1) == 0
    assert log_likelihood_ratio(np.stack([pairs, pairs[::-1]]), elo0, elo1).shape == (2,)


def test_bounds_and_verdicts():
    test = sprt([0, 0, 0, 0, 0], alpha=0.05, beta=0.1)
    assert test.verdict == "continue" and test.llr == 0
    assert test.lower == pytest.approx(math.log(0.1 / 0.95)) and test.upper == pytest.approx(math.log(0.9 / 0.05))
    assert sprt([0, 10, 100, 200, 90]).verdict == "accept H1" and sprt([90, 200, 100, 10, 0]).verdict == "accept H0"
    for sure in ([1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1]):  # one pair decides nothing
        assert sprt(sure, 0, 50).verdict == "continue"


@pytest.mark.parametrize("pairs, options, message", [
    ([1, 2, 3], {}, "Give five"), ([1, 2, -3, 1, 1], {}, "Give five"),
    ([1, 2, 3, 2, 1], {"elo0": 5, "elo1": 5}, "above elo0"),
    ([1, 2, 3, 2, 1], {"alpha": 0.5}, r"sprt\(alpha=0.5\)"), ([1, 2, 3, 2, 1], {"beta": 0}, r"sprt\(beta=0\)"),
])  # fmt: skip
def test_what_no_test_can_be_made_of_is_refused(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        sprt(pairs, **options)


def with_share(shape, share):
    """Chances of the five results of a pair: those of `shape`, exponentially tilted to this mean."""
    values, low, high = np.arange(5) / 4, -50.0, 50.0
    for _ in range(60):
        tilt = (low + high) / 2
        chances = np.array(shape) * np.exp(tilt * values)
        chances /= chances.sum()
        low, high = (tilt, high) if chances @ values < share else (low, tilt)
    return chances


def verdicts(chances, elo0, elo1, tests=3000, limit=4000, seed=0):
    """Shares of tests, looked at after every pair, that accept H1 and H0; and how many pairs they took."""
    rng, bounds = np.random.default_rng(seed), sprt([0] * 5, elo0, elo1)
    pairs, accepted, rejected, going = np.zeros((tests, 5)), 0, 0, np.arange(tests)
    for _ in range(limit):
        pairs[going] += rng.multinomial(1, chances, len(going))
        llr = log_likelihood_ratio(pairs[going], elo0, elo1)
        accepted, rejected = accepted + (llr >= bounds.upper).sum(), rejected + (llr <= bounds.lower).sum()
        going = going[(llr < bounds.upper) & (llr > bounds.lower)]
        if not len(going):
            break
    return accepted / tests, rejected / tests, pairs.sum(1).mean()


@pytest.mark.parametrize("elo1", [50.0, 200.0])
@pytest.mark.parametrize("shape", [
    (1, 0, 2, 0, 1),  # two games without draws that do not depend on each other
    (1, 8, 18, 8, 1),  # half of the games drawn
    (0.01, 0.02, 0.94, 0.02, 0.01),  # openings that decide who wins: a point each
    (0.0, 0.03, 0.94, 0.03, 0.0),
])  # fmt: skip
def test_errors_are_as_rare_as_promised(shape, elo1):
    chances = [with_share(shape, expected_share(e)) for e in (0.0, elo1)]
    (wrong, right, _), (hit, missed, _) = (verdicts(c, 0.0, elo1) for c in chances)
    assert [wrong + right, hit + missed] == pytest.approx([1, 1])  # all came to an end
    allowed = 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 3000)  # nominal, and the error of 3,000 tests
    assert wrong < allowed and missed < allowed


def test_tests_take_as_long_as_they_should():
    # Wald's approximation: the mean of the ratio at the end over its drift per pair
    for shape, elo1 in (((1, 0, 2, 0, 1), 30.0), ((1, 8, 18, 8, 1), 20.0)):
        chances = with_share(shape, expected_share(0.0))
        values = np.arange(5) / 4
        variance = chances @ values**2 - (chances @ values) ** 2
        drift = (expected_share(elo1) - 0.5) ** 2 / 2 / variance
        wald = (0.95 - 0.05) * math.log(19) / drift
        _, _, length = verdicts(chances, 0.0, elo1, tests=500)
        assert wald == pytest.approx(length, rel=0.12)
    # half-way between the hypotheses nothing can be said, and it takes longest
    between = with_share((1, 8, 18, 8, 1), expected_share(10.0))
    accepted, _, longer = verdicts(between, 0.0, 20.0, tests=500)
    assert longer > 1.3 * length and abs(accepted - 0.5) < 0.1


def test_a_variance_from_the_pairs_alone_would_not_do(monkeypatch):
    """Why the formula has its correction: without it, errors are many times what was promised."""

    def plain(pairs, elo0, elo1):
        share0, share1 = expected_share(elo0), expected_share(elo1)
        counts = np.maximum(pairs, 1e-3)
        x, n = np.arange(5) / 4, counts.sum(-1)
        mean = counts @ x / n
        return n * (mean - (share0 + share1) / 2) * (share1 - share0) / (counts @ x**2 / n - mean**2)

    monkeypatch.setitem(globals(), "log_likelihood_ratio", plain)
    wrong, _, _ = verdicts(with_share((1, 0, 2, 0, 1), 0.5), 0.0, 50.0)
    assert wrong > 0.2
