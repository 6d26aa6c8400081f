"""The metrics of acting and of the unrolled loss, and the line of progress."""

import math

import jax
import numpy as np

from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.muzero.sizes import room

__all__ = ["describe", "line", "losses_in_metrics", "speeds"]


def describe(config: Config, told: dict[str, float], step: int) -> dict[str, float]:
    """Means over the episodes and the searches of a chunk.

    "acting/steps" and "replay/steps" count searches. Where an episode is cut, its last state is searched and counted,
    too, although no step is taken from it.
    """
    written = config.acting.environments * config.acting.steps
    values = {
        "acting/episodes": told["episodes"],
        "acting/entropy": told["entropy"] / written,
        "acting/improvement": told["improvement"] / written,
        "acting/distinct": 1000 * told["distinct"] / written,
        "acting/bad": told["bad"],
        "acting/steps": written * (step + 1),
        "acting/taken": told["steps"],
        "replay/steps": min(written * (step + 1), room(config)),
    }
    if told["episodes"]:
        n = told["episodes"]
        average = told["returned"] / n
        values |= {
            "acting/return": average,
            "acting/return_deviation": math.sqrt(max(told["squared"] / n - average**2, 0.0)),
            "acting/length": told["length"] / n,
            "acting/first_wins": told["first_wins"] / n,
            "acting/draws": told["draws"] / n,
        }
    return values


def losses_in_metrics(losses) -> dict[str, float]:
    """The losses by head, of the observed state and of each imagined state."""
    losses = jax.device_get(losses)  # in one transfer
    values = {f"loss/{name}": float(x) for name, x in losses._asdict().items() if name != "parts"}
    parts = losses.parts._asdict()
    chance = parts.pop("chance")
    parts |= {} if chance is None else chance._asdict()
    single = [name for name, x in parts.items() if not x.ndim]
    values |= {f"loss/{name}": float(parts.pop(name)) for name in single}
    if "code_counts" in parts:
        shares = np.asarray(parts.pop("code_counts"), np.float64)
        shares /= max(shares.sum(), 1)
        values |= {f"codes/{i}": float(x) for i, x in enumerate(shares)}
        entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-12)))
        values["loss/codes_told_apart"] = float(np.exp(entropy - values["loss/code_entropy"]))
    for name, by_step in parts.items():
        first = 0 if name in ("policy", "value", "value_error") else 1
        values |= {f"unroll/{name}_{first + k}": float(x) for k, x in enumerate(np.asarray(by_step))}
        if by_step.size:
            values[f"loss/{name}"] = float(np.mean(by_step))
    return {name: x for name, x in values.items() if math.isfinite(x)}


def speeds(config: Config, values: dict[str, float], seconds: float) -> dict[str, float]:
    """How fast an iteration was."""
    steps = config.acting.environments * config.acting.steps
    return {"speed/steps": steps / seconds, "speed/simulations": steps * config.acting.simulations / seconds}


def line(v: dict[str, float], done: float) -> str:
    """One line of progress."""
    told = [f"{v['acting/steps']:,.0f} steps", f"{v['speed/steps']:,.0f}/s"]
    if "return/mean" in v:
        told.append(f"return {v['return/mean']:,.1f} (deviation {v['return/deviation']:,.1f})")
    elif "acting/return" in v:
        told.append(f"acting return {v['acting/return']:,.1f}")
    losses = [f"{name} {v[f'loss/{name}']:.3f}" for name in ("policy", "value", "reward") if f"loss/{name}" in v]
    told += [f"losses: {', '.join(losses)}"] if losses else []
    told += [] if "learning_rate" in v else ["filling the replay"]
    told.append(f"{v['acting/distinct']:.0f}/1000 states distinct")
    left = max(0, round(60 * v["minutes"] * (1 / max(done, 1e-6) - 1)))
    told.append(f"{left // 60}:{left % 60:02} left")
    return "  ".join(told) + (f"  {v['acting/bad']:.0f} searches or rewards not finite" if v["acting/bad"] else "")
