"""Health warnings from the metrics of a run: what was seen, the likely cause, which setting to change.

    health = Health(num_actions=game.num_actions)
    for each iteration:  health, sentences = look(health, {"step": step, **values})

`values` are the floats of one iteration, under the names that training writes to metrics.jsonl; absent or non-finite
values are ignored. When a run goes on, reading its earlier lines (`metrics.read`) restores its health, so that no
warning is repeated.

The checks here are those of self-play. Other kinds of training have checks and metrics of their own, which their
`Health` holds: `checks` (which use `mean`), `games`, `per_game` and `per_iteration`.

Iterations are gathered in blocks that are long enough to mean something: at least 500 games and 50 iterations. A
warning comes at the end of the first block that gives cause for it, and again only if a block in between did not.
Skipped minibatches are reported at once.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Block", "Health", "look", "mean"]

GAMES, ITERATIONS = 500, 50  # of a block, at least
PER_GAME = "selfplay/first_wins", "selfplay/draws"  # means over games; the next ones are over iterations
PER_ITERATION = "selfplay/entropy", "selfplay/improvement", "selfplay/same_openings", "loss/policy", "loss/value"

NEARLY_ALL = 0.97  # share of the games: with a true share of 90 %, fewer than one in a million blocks of 500 reach it
ALIKE = 0.1  # share of the pairs of games with the same position early on, as if there were ten openings
CERTAIN = 0.03  # of ln A. In Connect Four 0.06 nats: 99 % on one move, on average over whole games
IDLE = 0.01  # nats between the search's policy and the network's: 93 % for a move instead of 90 % is 0.006
UNSURE = 0.25  # squared error of the value, or nats: for games won or lost, of about the same network
OLD, OLD_SHARE = 100, 0.75  # iterations, and share of all iterations


class Block(NamedTuple):
    """Sums over the iterations of the block that is being gathered.

    Attributes:
        iterations: how many.
        games: games that ended.
        sums: by name, the sum of values times weights, and of the weights: games or iterations.
        skipped: minibatches that were skipped.
        step: of the last iteration.
        age: of the oldest row that may be sampled, in iterations, at the last iteration.
    """

    iterations: int = 0
    games: float = 0.0
    sums: Mapping[str, tuple[float, float]] = {}
    skipped: float = 0.0
    step: float = 0.0
    age: float = 0.0


class Health(NamedTuple):
    """What `look` carries from one iteration to the next.

    Attributes:
        num_actions: A of the game: entropies are compared with ln A.
        block: the block that is being gathered.
        standing: names of the warnings that the last block gave cause for.
        checks: `health -> sentence or None`, called at the end of each block; None: `CHECKS`, those of self-play.
        games: the metric that counts the games, or episodes, that ended.
        per_game: metrics that are means over games; a block's mean weighs them so.
        per_iteration: metrics that are means over iterations.
    """

    num_actions: int
    block: Block = Block()
    standing: frozenset[str] = frozenset()
    checks: tuple[Callable[..., str | None], ...] | None = None
    games: str = "selfplay/games"
    per_game: tuple[str, ...] = PER_GAME
    per_iteration: tuple[str, ...] = PER_ITERATION


def look(health: Health, values: Mapping[str, float]) -> tuple[Health, list[str]]:
    """Add the metrics of one iteration; returns warnings about what went wrong since the last call.

    Args:
        health: from the iteration before; `Health(num_actions)` before the first.
        values: metrics of one iteration: "step", "loss/skipped" (minibatches), "replay/age" (iterations),
            "selfplay/games", "/first_wins", "/draws", "/same_openings" (shares), "/entropy", "/improvement" (nats),
            "loss/policy" (nats), "loss/value" (squared error, or nats); and those that the health names. Others are
            ignored.

    Returns:
        The health for the next iteration, and sentences for the user, usually none.

    >>> health = Health(num_actions=7)
    >>> for step in range(60):
    ...     health, sentences = look(health, {"step": step, "selfplay/games": 20, "selfplay/draws": 0.99})
    ...     print(*sentences, end="")
    99.0% of the last 1,000 games were draws. ...
    """
    finite = {name: float(x) for name, x in values.items() if math.isfinite(x)}
    block, standing, sentences = gathered(health, finite), health.standing, []
    if (number := finite.get("loss/skipped", 0)) > 0 and "skipped" not in standing:
        standing |= {"skipped"}
        sentences.append(
            f"{number:.0f} minibatch{'es were' if number > 1 else ' was'} skipped, because the loss or gradient was "
            "not finite. Likely the learning rate is too high, or the network overflows: lower "
            "--learn.learning-rate, or use a smaller network."
        )
    health = health._replace(block=block, standing=standing)
    if block.games < GAMES or block.iterations < ITERATIONS:
        return health, sentences
    checks = CHECKS if health.checks is None else health.checks
    found = {check.__name__: said for check in checks if (said := check(health))}
    sentences += [said for name, said in found.items() if name not in standing]
    skipped = {"skipped"} if block.skipped else set()
    return health._replace(block=Block(), standing=frozenset(found) | skipped), sentences


def gathered(health: Health, values: Mapping[str, float]) -> Block:
    """The block with one more iteration, of finite values."""
    block = health.block
    games, sums = values.get(health.games, 0.0), dict(block.sums)
    weights = dict.fromkeys(health.per_game, games) | dict.fromkeys(health.per_iteration, 1.0)
    for name in weights.keys() & values.keys():
        total, weight = sums.get(name, (0.0, 0.0))
        sums[name] = total + weights[name] * values[name], weight + weights[name]
    return Block(
        iterations=block.iterations + 1,
        games=block.games + games,
        sums=sums,
        skipped=block.skipped + values.get("loss/skipped", 0.0),
        step=values.get("step", block.step),
        age=values.get("replay/age", block.age),
    )


def mean(health: Health, name: str) -> float:
    """The mean of a metric over the block; NaN, for which no comparison holds, where too little is known.

    Too little is less than half the block. For openings any number is enough: where games are long, only few iterations
    have some.
    """
    block = health.block
    total, weight = block.sums.get(name, (0.0, 0.0))
    whole = block.games if name in health.per_game else 0 if name == "selfplay/same_openings" else block.iterations
    return total / weight if weight > 0 and weight >= whole / 2 else math.nan


def one_sided(health: Health) -> str | None:
    """One of the players wins nearly all games."""
    block = health.block
    wins, draws = mean(health, "selfplay/first_wins"), mean(health, "selfplay/draws")
    who, share = ("first", wins) if wins > NEARLY_ALL else ("second", 1 - wins - draws)
    if not share > NEARLY_ALL:
        return None
    return (
        f"The {who} player won {share:.1%} of the last {block.games:,.0f} games. Likely all of them follow openings "
        "that one side wins (or the game is one-sided, as Hex on a small board): raise --selfplay.random-plies, so "
        "that openings are more even and more varied."
    )


def all_drawn(health: Health) -> str | None:
    """Nearly all games are draws."""
    draws = mean(health, "selfplay/draws")
    if not draws > NEARLY_ALL:
        return None
    return (
        f"{draws:.1%} of the last {health.block.games:,.0f} games were draws. Likely both sides repeat safe lines, or "
        "games are cut before they are decided (or the game is a draw, as tic-tac-toe): raise "
        "--selfplay.random-plies or --selfplay.random-rate, so that positions arise that one side can win."
    )


def openings_alike(health: Health) -> str | None:
    """Games do not diverge in the opening."""
    same = mean(health, "selfplay/same_openings")
    if not same > ALIKE:
        return None
    return (
        f"{same:.1%} of all pairs of games had the same position after a few moves, over {health.block.iterations} "
        "iterations. Likely self-play repeats its favourite openings (or the game has few, as tic-tac-toe): raise "
        "--selfplay.random-plies."
    )


def collapsed(health: Health) -> str | None:
    """The search's policy is nearly deterministic, and nothing works against that any more.

    Low entropy alone is no problem: a strong player is certain of most moves. It is one if the search only repeats the
    network, or if all games are the same.
    """
    entropy, change = (mean(health, f"selfplay/{x}") for x in ("entropy", "improvement"))
    same = mean(health, "selfplay/same_openings")
    if not certain(health):
        return None
    if change < IDLE:
        also = f"it differs from the network's by only {change:.4f} nats"
    elif same > ALIKE:
        also = f"{same:.1%} of all pairs of games had the same position after a few moves"
    else:
        return None
    return (
        f"The search's policy had an entropy of {entropy:.3f} nats ({entropy / math.log(health.num_actions):.1%} of "
        f"ln {health.num_actions}) over {health.block.iterations} iterations, and {also}. Likely self-play has "
        "collapsed to a few lines: raise --selfplay.random-plies or --selfplay.random-rate, or lower "
        "--learn.learning-rate."
    )


def certain(health: Health) -> bool:
    """Whether the search's policy has almost no entropy, on average over whole games."""
    return health.num_actions > 1 and mean(health, "selfplay/entropy") < CERTAIN * math.log(health.num_actions)


def search_idle(health: Health) -> str | None:
    """The search only repeats the network, although there is still much to learn."""
    change, policy, value = (mean(health, x) for x in ("selfplay/improvement", "loss/policy", "loss/value"))
    much = value > UNSURE or policy > math.log(max(health.num_actions, 2)) / 2
    if not (change < IDLE and much) or certain(health):
        return None
    return (
        f"The search changed the network's policy by only {change:.4f} nats, over {health.block.iterations} "
        f"iterations, while the losses are still high (policy {policy:.3f}, value {value:.3f}). Likely searches are "
        "too short, or values differ too little to guide them: raise --selfplay.simulations; if the "
        "value loss does not fall, lower --learn.learning-rate."
    )


def replay_too_old(health: Health) -> str | None:
    """Rows are sampled from nearly the whole of a long run, including its worthless beginning.

    `--learn.newest` is 0.6 by default, so an age of 0.6 of all iterations, and a few for the games to end, is normal.
    """
    block = health.block
    learning = not math.isnan(mean(health, "loss/policy"))
    if not (learning and block.age > OLD and block.age > OLD_SHARE * block.step):
        return None
    return (
        f"Rows up to {block.age:,.0f} iterations old are sampled, of {block.step:,.0f} in all. Likely many of them are "
        "from games of much weaker networks: lower --learn.newest to 0.6 or less, or --learn.capacity, or "
        "--learn.start."
    )


CHECKS = one_sided, all_drawn, openings_alike, collapsed, search_idle, replay_too_old
