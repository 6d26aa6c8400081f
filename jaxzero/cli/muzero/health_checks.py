"""Health warnings from the metrics of MuZero's training."""

import math

from jaxzero.runs.health import Health, mean

__all__ = ["begin_health"]

SILENT = 0.1  # share of the spread of the rewards
PAID = 0.02  # with a smaller spread of rewards there is nothing to predict
TOO_WIDE = 0.01  # share of value targets outside the range of the head
COLLAPSED = 0.02  # spread of hidden states, whose numbers have a standard deviation of about 1 in each
ONE_CODE = 1.05  # codes that are told apart
ALIKE = 50  # of a thousand states
CERTAIN, IDLE = 0.03, 0.003  # entropy as a share of ln A; improvement in nats


def begin_health(num_actions: int) -> Health:
    """The health of a run that has not begun; blocks are counted in steps, because episodes may be long."""
    names = "loss/reward_spread", "loss/reward_said", "loss/outside", "loss/spread", "loss/codes_told_apart"
    more = "acting/distinct", "acting/entropy", "acting/improvement"
    return Health(num_actions, checks=CHECKS, games="acting/taken", per_game=(), per_iteration=names + more)


def rewards_unsaid(health: Health) -> str | None:
    """Rewards differ, but the model predicts the same one for all."""
    there, said = (mean(health, f"loss/reward_{name}") for name in ("spread", "said"))
    if not (there > PAID and said < SILENT * there):
        return None
    return (
        f"Rewards differ by {there:.3f} (standard deviation), but the model's predictions by only {said:.4f}, over "
        f"{health.block.iterations} iterations. Likely the other losses drown the reward loss, or rewards are too rare "
        "in the replay: raise --learn.reward-weight, or lower --learn.value-weight."
    )


def values_outside(health: Health) -> str | None:
    """Returns outside the range of the value head are clipped."""
    share = mean(health, "loss/outside")
    if not share > TOO_WIDE:
        return None
    return (
        f"{share:.1%} of the value targets lie outside the range of the value head, and were clipped, over "
        f"{health.block.iterations} iterations: raise --network.limit with two_hot or hl_gauss. "
        "bounded and win_draw_loss reach from -1 to 1: use --network.head hl_gauss instead."
    )


def embeddings_collapsed(health: Health) -> str | None:
    """Hidden states do not depend on the observation."""
    spread = mean(health, "loss/spread")
    if not spread < COLLAPSED:
        return None
    return (
        f"Hidden states of different windows differ by only {spread:.4f} after {health.block.iterations} iterations: "
        "they have collapsed. Likely the learning rate is too high, or no target depends on the observation: "
        "lower --learn.learning-rate, or --learn.consistency."
    )


def codes_collapsed(health: Health) -> str | None:
    """All outcomes of chance get the same code."""
    used = mean(health, "loss/codes_told_apart")
    if not used < ONE_CODE:
        return None
    return (
        f"The model tells {used:.2f} chance codes apart (the exponential of their information on a step, in nats) over "
        f"{health.block.iterations} iterations: they have collapsed to one, and the model averages over chance. Likely "
        "rewards and values hardly depend on chance: give --learn.reconstruction 3 --learn.code-entropy 0.1."
    )


def states_alike(health: Health) -> str | None:
    """Few distinct states are visited, so the model learns nothing about others."""
    distinct = mean(health, "acting/distinct")
    if not distinct < ALIKE:
        return None
    return (
        f"Only {distinct:.0f} of 1,000 states differed, over {health.block.iterations} iterations. A learned model "
        "knows nothing about unvisited states: raise --acting.openings or --acting.random-rate (unless the environment "
        "has few states)."
    )


def collapsed(health: Health) -> str | None:
    """The search's policy is nearly deterministic, and the search only repeats the network's."""
    entropy, change = (mean(health, f"acting/{name}") for name in ("entropy", "improvement"))
    least = CERTAIN * math.log(max(health.num_actions, 2))
    if not (entropy < least and change < IDLE and mean(health, "acting/distinct") < ALIKE):  # else it may be solved
        return None
    return (
        f"The search's policy had an entropy of {entropy:.4f} nats, and differs from the network's by only "
        f"{change:.4f} nats, over {health.block.iterations} iterations. Likely acting has collapsed to a few lines: "
        "raise --acting.range-floor or --acting.random-rate."
    )


CHECKS = rewards_unsaid, values_outside, embeddings_collapsed, codes_collapsed, states_alike, collapsed
