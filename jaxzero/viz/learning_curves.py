"""Learning curves, drawn by matplotlib."""

import io
import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxzero.viz.page import Picture

__all__ = ["curves", "metrics"]

# Also distinguishable for colour-blind people (Okabe and Ito 2008), blue and orange first.
COLOURS = ("#1f66b1", "#d9780f", "#0b7a5b", "#b1478a", "#6b7280", "#4aa3df", "#8a6d00")
LOOK = {
    "svg.fonttype": "none", "svg.hashsalt": "jaxzero", "font.family": "sans-serif", "font.size": 11,
    "font.sans-serif": ["Segoe UI", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#8c959f", "axes.labelcolor": "#1f2328",
    "axes.grid": True, "grid.color": "#e4e8ec", "grid.linewidth": 0.8, "axes.axisbelow": True,
    "xtick.color": "#57606a", "ytick.color": "#57606a", "text.color": "#1f2328", "axes.titlelocation": "left",
    "axes.titlesize": 13, "axes.titleweight": "bold", "figure.facecolor": "white", "axes.facecolor": "white",
    "text.parse_math": False, "axes.formatter.use_mathtext": False,  # else "$" would begin TeX
    "path.simplify_threshold": 0.6, "figure.constrained_layout.h_pad": 0.1, "figure.constrained_layout.w_pad": 0.1,
}  # fmt: skip


def curves(
    series: Mapping[str, tuple[Any, Any]],
    title: str = "",
    x: str = "",
    y: str = "",
    bands: Mapping[str, tuple[Any, Any]] | None = None,
) -> Picture:
    """Curves in one picture; if there are several, a legend at the side has their names.

    Args:
        series: for each name a pair (xs, ys) of equally many numbers; non-finite numbers leave a gap. The name of a
            single one is not shown: the title and `y` say what it is. All texts appear as given, "$" too.
        title: above the picture.
        x: the label of the horizontal axis, with its unit.
        y: the label of the vertical axis.
        bands: for some of the names a pair (low, high) around the curve, like an interval of 95 %.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: no series, or no pair of equally many numbers; a band of no series, or of another length.

    >>> from jaxzero import viz
    >>> picture = viz.curves({"loss": ([1, 2, 3], [3.0, 2.0, 1.5])}, "Learning", "step", "loss")
    >>> picture.svg.startswith("<svg"), ">Learning<" in picture.svg
    (True, True)
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("curves needs matplotlib, which is not installed: pip install -U matplotlib") from error
    drawn, bands = {name: _pair(name, pair) for name, pair in series.items()}, bands or {}
    if not drawn:
        raise ValueError("curves: no series were given: give a dictionary of names and pairs (xs, ys).")
    for name in bands:
        if name not in drawn:
            raise ValueError(f"curves: bands of {name!r}, which is not a series. Use one of {', '.join(drawn)}.")
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(7.6, 4.0), layout="constrained")
        axes = figure.add_subplot()
        lines = []
        for (name, (xs, ys)), colour in zip(drawn.items(), _forever(COLOURS)):
            marker = "o" if len(xs) <= 24 else None
            lines += axes.plot(xs, ys, color=colour, linewidth=2, marker=marker, markersize=4)
            if name in bands:
                low, high = _pair(name, bands[name], len(xs))
                axes.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.set(title=title, xlabel=x, ylabel=y)
        if len(drawn) > 1:
            place = dict(loc="upper left", bbox_to_anchor=(1.0, 1.0))
            legend = axes.legend(lines, ["?"] * len(lines), frameon=False, **place)
            for label, name in zip(legend.get_texts(), drawn, strict=True):
                label.set_text(name)  # not before: matplotlib leaves out names that begin with "_"
        text = io.StringIO()
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
    return Picture(_by_itself(text.getvalue()))


def _by_itself(svg: str) -> str:
    """The picture without matplotlib's style sheet, which would apply to the whole page that shows it."""
    rules = re.search(r"<defs>\s*<style[^>]*>\*{([^}]*)}</style>\s*</defs>", svg)
    if rules:
        svg = svg.replace(rules[0], "").replace("<svg ", f'<svg style="{rules[1]}" ', 1)
    return svg[svg.index("<svg") :].rstrip()


def _pair(name: str, pair: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two equally long rows of numbers."""
    try:
        one, other = (np.asarray(part, np.float64) for part in pair)
    except (TypeError, ValueError):
        one = other = np.zeros(())
    if one.ndim != 1 or one.shape != other.shape or len(one) != (len(one) if length is None else length):
        wanted = "equally many numbers each" if length is None else f"{length} numbers each, as many as the curve has"
        raise ValueError(f"curves: {name!r} is not a pair of rows of numbers: give two, {wanted}.")
    return one, other


def _forever(colours: tuple[str, ...]) -> Any:
    while True:
        yield from colours


def metrics(path: str | os.PathLike) -> dict[str, Float[np.ndarray, "lines"]]:
    r"""The metrics of a run as columns, the step among them; NaN where a line does not have one.

    Args:
        path: the metrics.jsonl of a run, or the run's folder.

    Raises:
        FileNotFoundError: there is none.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "metrics.jsonl")
    ...     _ = file.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.0, "elo": 10}\n')
    ...     found = metrics(file)
    >>> {name: column.tolist() for name, column in found.items()}
    {'step': [1.0, 2.0], 'loss': [2.5, 2.0], 'elo': [nan, 10.0]}
    """
    path = pathlib.Path(path)
    file = path / "metrics.jsonl" if path.is_dir() else path
    if not file.exists():
        raise FileNotFoundError(
            f"metrics({str(path)!r}): no such file. Give the metrics.jsonl of a run, or its folder."
        )
    lines = [line for line in map(_object, file.read_text("utf-8").splitlines()) if line]
    columns = dict.fromkeys(name for line in lines for name in line)
    return {name: np.array([line.get(name, np.nan) for line in lines], np.float64) for name in columns}


def _object(line: str) -> dict[str, float]:
    """The numbers of a line; empty for a last line that a kill cut short."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return {k: float(x) for k, x in found.items() if type(x) in (int, float)} if isinstance(found, dict) else {}
