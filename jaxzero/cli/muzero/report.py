"""The report of a run without the rules, `report.html`: returns, losses by head and step, and an episode or games."""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxzero import nets, viz
from jaxzero.cli.muzero.code_meanings import code_table
from jaxzero.cli.muzero.evaluation import Tables
from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.setup import Run, on_host, policy
from jaxzero.cli.training.reporting import report as of_games
from jaxzero.cli.training.reporting.report_parts import how_it_went, page, rows_of, settings_and_next, what_was_learned
from jaxzero.runs import progress_display
from jaxzero.train.muzero.episodes import record_episode
from jaxzero.viz import report as pages
from jaxzero.viz.observation_planes import planes

__all__ = ["how_it_looks_ahead", "write"]

SHOWN = 200  # steps of an episode; one more is recorded, which tells whether it was over by then
WORDS = {
    "greedy": "Returns are sums of rewards, not discounted; greedy episodes do not explore. ± is the standard error.",
    "model": "One step by the model rates each move by the reward and value that the model predicts; one step by the "
    "true rules uses the same values. Where the latter makes fewer mistakes, the dynamics are wrong.",
}
CURVES = (
    ("Rating", "Elo above the untrained network", {"rating": "rating/elo"}),
    ("Outcome mistakes on exactly solved positions", "share", {"raw network": "mistakes/raw"}),
    ("What the model knows", "outcome mistakes", {"one step by the model": "model/learned",
                                                  "one step by the rules": "model/true", "policy": "model/raw"}),
    ("Return while acting", "sum of rewards", {"acting": "acting/return"}),
    ("Losses", "nats; squared error", {"policy": "loss/policy", "value": "loss/value", "reward": "loss/reward",
                                       "consistency": "loss/consistency"}),
    ("Distinct states", "of 1,000", {"as observed": "acting/distinct"}),
    ("Length of episodes", "steps", {"steps": "acting/length"}),
    ("Speed", "steps per second", {"acting and learning": "speed/steps"}),
)  # fmt: skip


def write(
    config: Config,
    folder: pathlib.Path,
    environment: Any,
    run: Run,
    params: Any,
    tables: Tables,
    following: Sequence[str],
    verdict: str = "",
) -> pathlib.Path:
    """Makes the page of a run anew.

    Args:
        config: its settings.
        folder: the run's.
        environment: what was learned.
        run: its network and model.
        params: what was learned.
        tables: captions, heads and rows of what was measured.
        following: commands that may follow.
        verdict: what was reached, in a sentence.
    """
    rows = rows_of(folder)
    game = environment.num_players == 2
    words = f"{of_games.POINTS} {of_games.MISTAKES} {WORDS['model']}" if game else WORDS["greedy"]
    parts = what_was_learned(tables, words) + returns(rows) + how_it_went(rows, CURVES)
    parts += model_errors(rows) if config.model != "simulator" else []
    search = policy(config, environment, run.model, config.evaluate.simulations, explore=False)
    if game and config.evaluate.games:
        parts += of_games.thoughts(environment.game, search, params, config.seed, with_tree=False)
    elif not game and not on_host(environment):
        parts += episode(config, environment, run, search, params)
    parts += settings_and_next(dataclasses.asdict(config), following)
    return page(folder, f"jaxzero learned {environment.id} {how_it_looks_ahead(config)}", rows, parts, verdict)


def how_it_looks_ahead(config: Config) -> str:
    """What the search knows of the rules, in words."""
    return "in its simulator" if config.model == "simulator" else "without its rules"


def returns(rows: list[dict]) -> list[pages.Section]:
    """The mean return of greedy episodes over the steps in the environment, with the spread of the episodes."""
    seen = [row for row in rows if "return/mean" in row]
    if len(seen) < 2:
        return []
    steps, mean, spread = (np.array([r[x] for r in seen]) for x in ("acting/steps", "return/mean", "return/deviation"))
    picture = viz.curves(
        {"greedy episodes": (steps, mean)},
        title="Return",
        x="steps in the environment",
        y="sum of rewards",
        bands={"greedy episodes": (mean - spread, mean + spread)},
    )
    note = "The band is one standard deviation of the episodes to either side."
    return [pages.Section("Returns", pages.pictures(picture, note=note))]


def model_errors(rows: list[dict]) -> list[pages.Section]:
    """How wrong the model was, k steps ahead, at the end: means over the last tenth of the run."""
    last = [row for row in rows[-max(len(rows) // 10, 1) :] if "unroll/value_error_0" in row]
    if not last:
        return []
    said = lambda name: f"{np.mean([row[name] for row in last]):.3f}" if name in last[-1] else ""
    heads = {"policy": "policy, nats", "value_error": "value error", "reward_error": "reward error"}
    heads |= {"value": "value loss", "reward": "reward loss"}
    ahead = sum(name.startswith("unroll/policy_") for name in last[-1])
    table = [[str(k), *(said(f"unroll/{name}_{k}") for name in heads)] for k in range(ahead)]
    caption = "How wrong the model is, by steps ahead: means over the last tenth of the run"
    note = "<p class='quiet'>0 is the observed state; later ones are imagined.</p>"
    return [pages.Section("The model", pages.table(caption, ["steps ahead", *heads.values()], table) + note)]


def episode(config: Config, environment: Any, run: Run, search: Any, params: Any) -> list[pages.Section]:
    """A greedy episode, to step through; and what its codes of chance were, if the model has such."""
    with progress_display.announced("Recording the episode of the report"):
        recorded = jax.jit(functools.partial(record_episode, environment, search, steps=SHOWN + 1))
        states, told = recorded(params, jax.random.key(config.seed + 4))
        told = {name: np.asarray(x) for name, x in told.items()}
    moments, paid = [], 0.0
    for i in range(min(int((~told["over"]).sum()), SHOWN)):
        state = jax.tree.map(lambda x, i=i: x[i], states)
        paid += float(told["reward"][i])
        words = (
            f"step {i + 1}: action {in_words(told['action'][i])}, reward {float(told['reward'][i]):g}\n"
            f"value before it {float(told['value'][i]):.2f}, discounted\nrewards so far: {paid:g}"
        )
        moments.append(pages.Ply(picture(environment, state), words))
    over = bool(told["over"][-1])
    title = f"{len(moments)} steps, {paid:g} paid" + ("" if over else "; unfinished")
    body = "<p class='quiet'>A greedy episode. Use buttons or arrow keys.</p>" + pages.stepper(
        [pages.Record(title, tuple(moments))]
    )
    return [pages.Section("An episode", body), *codes(environment, run, params, states, told)]


def in_words(action: np.ndarray) -> str:
    """The number of an action, or the entries of a continuous one."""
    return f"{int(action)}" if action.ndim == 0 else ", ".join(f"{x:.2f}" for x in action)


def codes(environment: Any, run: Run, params: Any, states: Any, told: dict) -> list[pages.Section]:
    """The codes of chance in the steps of an episode."""
    steps = int((~told["over"]).sum())
    if not isinstance(run.network, nets.StochasticNetwork) or steps < 2:
        return []
    shown = jax.tree.map(lambda x: x[:steps], states)
    head, rows = code_table(run.network, params, environment, shown, told["action"][: steps - 1])
    caption = f"Chance codes in {steps - 1} steps of the episode, out of {run.network.codes}"
    return [pages.Section("Chance", pages.table(caption, head, rows))]


def picture(environment: Any, state: Any) -> viz.Picture:
    """The state as the environment draws it, else what is observed, as planes of colours or as numbers."""
    if environment.draw is not None:
        return viz.Picture(environment.draw(state))
    return planes(np.asarray(environment.observe(state)))
