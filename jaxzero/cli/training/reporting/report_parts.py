"""Parts that all reports of training runs share: results, curves, settings, versions, and commands that may be next."""

import json
import pathlib
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata

import numpy as np

import jaxzero as jz
from jaxzero import viz
from jaxzero.runs import metrics, progress_display
from jaxzero.viz import report as pages

__all__ = ["Curves", "curves", "how_it_went", "page", "rows_of", "settings_and_next", "what_was_learned"]

PACKAGES = "jaxzero jax jaxlib flax optax orbax-checkpoint chex pgx numpy".split()

# Curves: a title, the label of the axis, and the metrics by the labels of their lines.
Curves = Sequence[tuple[str, str, Mapping[str, str]]]


def rows_of(folder: pathlib.Path) -> list[dict[str, float]]:
    """The metrics of a run that say how many minutes had gone by."""
    return [row for row in metrics.read(folder) if "minutes" in row]


def what_was_learned(tables: Sequence[tuple[str, list[str], list[list[str]]]], words: str) -> list[pages.Section]:
    """A section of what was measured: captions, heads and rows, with an explanation. Empty without tables."""
    learned = "".join(pages.table(*one) for one in tables) + f"<p class='quiet'>{words}</p>"
    return [pages.Section("What was learned", learned)] if tables else []


def how_it_went(rows: list[dict], table: Curves) -> list[pages.Section]:
    """A section with curves of the metrics that exist; empty if none does."""
    shown = curves(rows, table)
    return [pages.Section("How it went", pages.pictures(*shown))] if shown else []


def settings_and_next(settings: dict, following: Sequence[str]) -> list[pages.Section]:
    """What a report ends with: settings, versions and device, and commands that may be next."""
    given = pages.table("", ["setting", "value"], flat(settings))
    made = pages.table("", ["what", "which"], made_with())
    return [
        pages.Section("Settings", pages.folded(f"All {len(flat(settings))} settings", given)),
        pages.Section("Made with", pages.folded("Versions and device", made)),
        pages.Section("What next", pages.commands(following)),
    ]


def page(
    folder: pathlib.Path, title: str, rows: list[dict], parts: Sequence[pages.Section], verdict: str = ""
) -> pathlib.Path:
    """Writes `report.html` of a run anew.

    Args:
        folder: the run's.
        title: what stands above it.
        rows: the run's metrics, see `rows_of`.
        parts: what stands in it.
        verdict: what was reached, in a sentence.
    """
    last = rows[-1] if rows else {"minutes": 0, "step": 0}
    spent = f"{last['step']:,} iterations in {last['minutes']:.1f} minutes on {progress_display.device()}."
    lead = [spent, f"The run's folder: {folder}."]
    return pages.report(title, lead, parts, verdict).save(folder / "report.html", overwrite=True)


def curves(rows: list[dict], table: Curves) -> list[viz.Picture]:
    """Pictures of the metrics that there are, over the minutes of the run."""
    found = []
    for title, axis, lines in table:
        simulated = {f"{name.split('/')[1]} simulations": name for row in rows[-1:] for name in last_looks(rows)}
        lines = dict(lines) | (simulated if "mistakes/raw" in lines.values() else {})
        series = {}
        for words, name in lines.items():
            points = [(row["minutes"], row[name]) for row in rows if name in row]
            if len(points) > 1:
                series[words] = tuple(np.array(thinned(points)).T)
        if series:
            found.append(viz.curves(series, title=title, x="minutes", y=axis))
    return found


def last_looks(rows: list[dict]) -> list[str]:
    """The names of the metrics of mistakes that were counted with simulations."""
    return sorted({name for row in rows for name in row if name.startswith("mistakes/") and name != "mistakes/raw"})


def thinned(points: list[tuple[float, float]], most: int = 400) -> list[tuple[float, float]]:
    """Means of neighbours where there are more points than a picture shows."""
    pieces = np.array_split(np.array(points, float), min(len(points), most))
    return [tuple(piece.mean(0)) for piece in pieces]


def flat(settings: dict, prefix: str = "") -> list[list[str]]:
    """Settings by the names that the command line has for them."""
    rows = []
    for name, value in settings.items():
        rows += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [[prefix + name, json.dumps(value)]]
    return rows


def made_with() -> list[list[str]]:
    """Versions and the device."""
    found = [["python", platform.python_version()], ["device", progress_display.device()]]
    for name in PACKAGES:
        try:
            found.append([name, metadata.version(name)])
        except metadata.PackageNotFoundError:
            found.append([name, jz.__version__ if name == "jaxzero" else "not installed"])
    return found
