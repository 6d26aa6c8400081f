"""The parts of the report that only a run without the rules has."""

import json
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.cli.muzero import report
from jaxzero.cli.muzero.settings import Config
from jaxzero.environments import Environment, Outcome, cartpole


def looks(*returns):
    return [
        {"minutes": i, "acting/steps": 100 * i, "return/mean": x, "return/deviation": 1.0}
        for i, x in enumerate(returns)
    ]


def test_returns_are_drawn_over_steps_once_there_are_two():
    assert report.returns(looks(3.0)) == [] and report.returns([{"minutes": 1.0}] * 5) == []
    (section,) = report.returns(looks(3.0, 9.0, 20.0) + [{"minutes": 9.0}])
    assert section.title == "Returns" and "steps in the environment" in section.body and "<svg" in section.body


def test_errors_of_the_model_are_means_over_the_last_tenth():
    rows = [{"unroll/policy_0": 9.0, "unroll/value_error_0": 9.0} for _ in range(18)]
    last = {"unroll/policy_0": 0.1, "unroll/policy_1": 0.3, "unroll/value_error_0": 1.0, "unroll/value_error_1": 2.0}
    last |= {"unroll/reward_error_1": 4.0, "unroll/value_0": 5.0, "unroll/value_1": 6.0, "unroll/reward_1": 7.0}
    rows += [last, {name: x + 0.2 for name, x in last.items()}]
    (section,) = report.model_errors(rows)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", section.body)
    assert cells == ["0", "0.200", "1.100", "", "5.100", "", "1", "0.400", "2.100", "4.100", "6.100", "7.100"]
    assert report.model_errors([{"minutes": 1.0}] * 30) == [] == report.model_errors([])


def world(length, draw=None):
    """Pays 1, 2, 3 ... and ends after so many steps."""

    def step(time, action, key):
        return time + 1, Outcome((time + 1.0) * jnp.where(action, 1, -1), time + 1 >= length, jnp.bool_(False))

    observe = lambda time: jnp.stack([time, -time]).astype(jnp.float32)
    reset = lambda key: jnp.int32(0)
    return Environment("ladder", 2, (2,), reset, step, observe, draw=draw)


def search(params, keys, time):
    return types.SimpleNamespace(action=jnp.ones(len(keys), jnp.int32), value=time / 4.0)


@pytest.mark.parametrize("length, shown, title", [
    (3, 3, "3 steps, 6 paid"),
    (4, 4, "4 steps, 10 paid"),  # as many as are shown
    (9, 4, "4 steps, 10 paid; unfinished"),
])  # fmt: skip
def test_an_episode_is_shown_up_to_its_end(monkeypatch, length, shown, title):
    monkeypatch.setattr(report, "SHOWN", 4)
    (section,) = report.episode(Config(), world(length), types.SimpleNamespace(network=None), search, None)
    (plies,) = json.loads(re.search(r'<script type="application/json">(.*?)</script>', section.body, re.S).group(1))
    assert len(plies) == shown and title + "<" in section.body.replace("</option>", "<")
    for i, (picture, words) in enumerate(plies):
        assert words == (
            f"step {i + 1}: action 1, reward {i + 1}\nvalue before it {i / 4:.2f}, discounted\n"
            f"rewards so far: {sum(range(i + 2))}"
        )
        assert "<svg" in picture


def test_a_state_is_drawn_as_its_environment_does_else_by_what_is_seen():
    drawn = world(3, draw=lambda time: f'<svg xmlns="http://www.w3.org/2000/svg"><text>{int(time)}</text></svg>')
    assert "<text>2</text>" in report.picture(drawn, jnp.int32(2)).svg
    assert "-2" in report.picture(world(3), jnp.int32(2)).svg
    state = cartpole().reset(jax.random.key(0))
    assert "rotate" in report.picture(cartpole(), jax.tree.map(np.asarray, state)).svg
