"""Listed outcomes against what steps draw: what is right passes, and each kind of mistake is named."""

import jax.numpy as jnp
import pytest

from jaxzero import games
from jaxzero.games.checks.outcome_checks import check_outcomes
from jaxzero.games.outcomes import sampled
from tests.games import dice_race
from tests.games.dice_race import game as race


def told(**change):
    return race._replace(outcomes=race.outcomes._replace(**change))


def chances(*numbers):
    return lambda state, action: jnp.where(action == 1, jnp.array(numbers), jnp.array([1.0, 0.0]))


def test_what_is_right_passes():
    check_outcomes(race)
    check_outcomes(race._replace(outcomes=sampled(race, 3)))
    check_outcomes(race._replace(outcomes=None))


@pytest.mark.slow
@pytest.mark.parametrize("make", [games.game_2048, games.backgammon])
def test_so_do_the_games_that_come_along(make):
    if make is games.backgammon:
        pytest.importorskip("pgx")
    check_outcomes(make())


@pytest.mark.parametrize("wrong, said", [
    (dict(probabilities=chances(0.6, 0.3)), r"add up to 0\.9 at a step: 0\.1 too little"),
    (dict(probabilities=chances(0.6, 0.6)), r"add up to 1\.2 at a step: 0\.2 too much"),
    (dict(probabilities=chances(1.5, -0.5)), r"a probability of its outcomes is -0\.5"),
    (dict(probabilities=chances(jnp.nan, 1.0)), r"a probability of its outcomes is nan"),
    (dict(probabilities=chances(1.0, 0.0)), r"action roll drew outcome 1, whose probability is 0 there"),
    (
        dict(probabilities=chances(0.4, 0.6)),
        r"outcome \d occurred \d+ times in \d+ steps, but .* about \d+ were expected",
    ),
    (dict(probabilities=lambda state, action: jnp.ones(3) / 3), r"returns float32\[3\]: give one number for each"),
    (dict(step=lambda race, action, outcome, key: dice_race.rolled(race, action, 0 * outcome, key)),
     "action roll led to a position that is none of its outcomes"),
    (dict(happens=lambda race, action, following: action == 0), "the outcomes of action roll differ, but .*happens"),
])  # fmt: skip
def test_mistakes_are_named(wrong, said):
    with pytest.raises(ValueError, match=f"game dice_race: .*{said}"):
        check_outcomes(told(**wrong))


@pytest.mark.parametrize("wrong, said", [
    ([1, 2], r"outcomes is a list: give games.Outcomes"),
    (race.outcomes._replace(count=6.0), r"outcomes.count is 6.0: give a whole number, 2 or more"),
    (race.outcomes._replace(count=3), r"outcomes.probabilities\(state, action\) returns float32\[2\]: give one number"),
    (race.outcomes._replace(step=lambda race, action, outcome: race), r"outcomes.step\(.*\) fails: TypeError"),
    (race.outcomes._replace(step=lambda race, *_: race.squares), r"outcomes: step returns a state with another"),
])  # fmt: skip
def test_a_record_that_does_not_fit_is_named_before_anything_is_compiled(wrong, said):
    with pytest.raises(ValueError, match=f"game dice_race.*{said}"):
        games.check_rules(race._replace(outcomes=wrong))


def test_something_else_than_a_game_is_refused():
    with pytest.raises(ValueError, match="the game is a int"):
        check_outcomes(3)
