"""The metrics of self-play, and its line of progress."""

from jaxzero.cli.training.settings import Config
from jaxzero.cli.training.setup import newest

__all__ = ["describe", "line", "speeds"]


def describe(config: Config, told: dict[str, float], step: int) -> dict[str, float]:
    """Means over the games and plies of a chunk."""
    ended, plies = max(told["games"], 1), told["plies"]
    window = newest(config, step) / (config.selfplay.games * config.selfplay.plies)
    values = {
        "selfplay/games": told["games"],
        "selfplay/length": told["length"] / ended,
        "selfplay/first_wins": told["first_wins"] / ended,
        "selfplay/draws": told["draws"] / ended,
        "selfplay/entropy": told["entropy"] / plies,
        "selfplay/improvement": told["improvement"] / plies,
        "selfplay/proven": told["proven"] / plies,
        "selfplay/bad": told["bad"],
        "replay/rows": told["rows"],
        "replay/age": min(window, step),
    }
    return values | ({"selfplay/same_openings": told["same"] / told["pairs"]} if told["pairs"] else {})


def speeds(config: Config, values: dict[str, float], seconds: float) -> dict[str, float]:
    """How fast an iteration was."""
    rows = config.selfplay.games * config.selfplay.plies
    return {
        "speed/positions": rows / seconds,
        "speed/simulations": rows * config.selfplay.simulations / seconds,
        "speed/games": values["selfplay/games"] / seconds,
    }


def line(v: dict[str, float], done: float) -> str:
    """One line of progress."""
    policy, value = (v.get(f"loss/{name}", float("nan")) for name in ("policy", "value"))
    learned = f"losses: policy {policy:.3f}, value {value:.3f}" if "learning_rate" in v else "filling the buffer"
    left = max(0, round(60 * v["minutes"] * (1 / max(done, 1e-6) - 1)))
    odd = f"  {v['selfplay/bad']:.0f} searches met non-finite outputs" if v["selfplay/bad"] else ""
    return (
        f"{v['speed/games']:.0f} games/s  {v['speed/positions']:,.0f} positions/s  "
        f"{v['speed/simulations']:,.0f} sims/s  {learned}  "
        f"{v['selfplay/length']:.0f} plies a game  {left // 60}:{left % 60:02} left{odd}"
    )
