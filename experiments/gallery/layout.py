"""Shared by the scripts of the gallery: pictures in rows on a sheet, radial trees, and saving."""

import math
import os
import pathlib
import re
from collections.abc import Iterable

import numpy as np
from jaxtyping import Array, Bool, Float

from jaxzero import viz
from jaxzero.environments import Environment
from jaxzero.environments.cartpole import CartPoleState
from jaxzero.environments.pendulum import PendulumState
from jaxzero.viz import svg

SMALL = "JAXZERO_SMALL" in os.environ  # less work, for tests, and a picture in the current folder
PICTURES = pathlib.Path() if SMALL else pathlib.Path(__file__).parents[2] / "notebooks" / "pictures" / "gallery"
GAP, ABOVE = 16.0, 62.0


def sheet(title: str, says: str, *rows: tuple) -> viz.Picture:
    """A sheet with a title, a sentence (printed, too) and rows of pictures; a row is `(height, picture, ...)`."""
    print(says)
    parts = [svg.words(GAP, 28, title, 16, "start", font_weight=600)]
    parts.append(svg.words(GAP, 50, says, 13, "start", fill=svg.QUIET))
    width, y = max(svg.text_width(title, 16), svg.text_width(says, 13)) + 2 * GAP, ABOVE
    for high, *pictures in rows:
        x = GAP
        for picture in pictures:
            text = str(getattr(picture, "svg", picture)).replace("xlink:href", "href")
            text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)  # matplotlib's
            head, inside = text[: text.index(">")], text[text.index(">") + 1 :]
            box = re.findall(r'viewBox="([^"]*)"', head)[0]
            wide = high * float(box.split()[2]) / float(box.split()[3])
            look = [style for style in re.findall(r'style="([^"]*)"', head) if "stroke" in style]  # matplotlib's
            place = dict(x=x, y=y, width=wide, height=float(high), viewBox=box) | dict(zip(["style"], look))
            parts.append(svg.tag("svg", inside.removesuffix("</svg>"), **place))
            x += wide + GAP
        width, y = max(width, x), y + high + GAP
    return viz.Picture(svg.sheet(width, y, *parts))


def save(picture: viz.Picture, script: str) -> None:
    """Writes the picture of a script under the script's name."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = picture.save(PICTURES / f"{pathlib.Path(script).stem}.svg", overwrite=True)
    print(f"Written to {path}, {len(picture.svg) / 1000:.0f} kB")


def around(parents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A radial tree: the place of each node, `[N, 2]`, in rings of width 1, and its depth. Node 0 is the root.

    A node has a higher number than its parent, as in a search; each gets a part of its parent's angle by its leaves.
    """
    size = len(parents)
    leaves, depth = np.zeros(size), np.zeros(size, int)
    for i in range(size - 1, -1, -1):
        leaves[i] = max(leaves[i], 1)
        if i:
            leaves[parents[i]] += leaves[i]
    begin, taken, where = np.zeros(size), np.zeros(size), np.zeros((size, 2))
    for i in range(1, size):
        above = parents[i]
        depth[i] = depth[above] + 1
        begin[i] = begin[above] + taken[above]
        taken[above] += leaves[i]
        angle = 2 * math.pi * (begin[i] + leaves[i] / 2) / leaves[0]
        where[i] = depth[i] * np.array([math.sin(angle), -math.cos(angle)])
    return where, depth


def drawn_around(parents: np.ndarray, kinds: Iterable[tuple[np.ndarray, str]]) -> str:
    """The tree of `around` as an `<svg>`. A kind is its nodes, `bool [N]`, and a colour; later kinds are on top."""
    where, _ = around(parents)
    edges = "".join("M{:.2f} {:.2f}L{:.2f} {:.2f}".format(*where[i], *where[parents[i]]) for i in range(1, len(where)))
    dots = "".join(svg.line(svg.dots(where[nodes]), colour, 0.3) for nodes, colour in kinds)
    return svg.tag("svg", svg.line(edges, "#d5dae0", 0.05), dots, viewBox=box_of(where))


def box_of(where: np.ndarray) -> str:
    """The viewBox of a tree around its root."""
    low, high = where.min(0) - 0.9, where.max(0) + 0.9
    return "{:.2f} {:.2f} {:.2f} {:.2f}".format(*low, *(high - low))


def growing_around(parents: np.ndarray, radius: np.ndarray, colours: tuple[str, str]) -> str:
    """The tree of `around` as it grows: the radius of each node at each look, `[looks, N]`, 0 before it is there.

    One colour for even depths, one for odd. Without animation, as on paper, it is the tree of the last look.
    """
    where, depth = around(parents)
    born = (radius > 0).argmax(0)
    parts = []
    for look in range(len(radius)):
        new = [i for i in range(1, len(parents)) if born[i] == look]
        edges = "".join("M{:.2f} {:.2f}L{:.2f} {:.2f}".format(*where[i], *where[parents[i]]) for i in new)
        fades = _moving("opacity", [float(k >= look) for k in range(len(radius))])
        parts.append(svg.tag("g", svg.line(edges, "#c3cad2", 0.04), fades))
    for i in range(1, len(parents)):
        (x, y), grows = where[i].tolist(), _moving("r", radius[:, i])
        parts.append(svg.tag("circle", grows, cx=x, cy=y, r=float(radius[-1, i]), fill=colours[depth[i] % 2]))
    parts.append(svg.tag("circle", r=0.25, fill=svg.INK))
    return svg.tag("svg", *parts, viewBox=box_of(where))


def in_turn(texts: list[str]) -> str:
    """Texts one after the other, in the time of `growing_around`."""
    parts = []
    for look, text in enumerate(texts):
        shown = _moving("opacity", [float(k == look) for k in range(len(texts))], calcMode="discrete")
        last = float(look == len(texts) - 1)
        parts.append(svg.tag("g", svg.words(0, 18, text, 16, "start"), shown, opacity=last))
    return svg.tag("svg", *parts, viewBox="0 0 400 26")


def _moving(name: str, values: Iterable[float], **attributes: str) -> str:
    """An attribute that takes these values in turn for one second each, and the last for three."""
    values = [*values]
    values += values[-1:] * 3
    written = ";".join(f"{x:.2g}" for x in values)
    lasts = dict(dur=f"{len(values)}s", repeatCount="indefinite")
    return svg.tag("animate", attributeName=name, values=written, **lasts, **attributes)


def swing(world: Environment, states: PendulumState, torque: Float[Array, " T"], seconds: float) -> viz.Picture:
    """A swing of the pendulum: every tenth step drawn, and the angle from upright and the torque over time."""
    angle, time = np.degrees(np.asarray(states.angle)) % 360, seconds * np.arange(len(torque))
    away = np.minimum(angle, 360 - angle)
    last = time[away > 10][-1] + seconds
    still = f"within 10 degrees of upright from {last:.1f} s on" if away[-1] <= 10 else "not upright in the end"
    says = f"Hanging at first, {still}."
    assert world.draw is not None
    film = [world.draw(type(states)(*(x[i] for x in states))) for i in range(0, len(torque), 10)]
    degrees = viz.curves({"angle": (time, away)}, "Angle from upright", "seconds", "degrees")
    torques = viz.curves({"torque": (time, np.clip(torque, -2, 2))}, "Torque", "seconds", "newton metres")
    title = "Pendulum, swung up by search, without learning"
    return sheet(title, says, (62, *film), (240, degrees, torques))


def foretold(
    world: Environment, states: Float[Array, "2 T n 4"], values: Float[Array, "2 T n"], taken: Bool[Array, "2 T n"]
) -> viz.Picture:
    """CartPole plans as a model imagines them (0), and what really happens (1): one plan, and the errors of all.

    The plan shown is the one with the median error of the last angle. Below: medians over the plans, with quartiles.
    """
    angles, values = (np.where(taken, x, np.nan) for x in (np.degrees(states[..., 2]), values))
    off, count = abs(angles[0] - angles[1]), range(len(angles[0]))
    one = np.argsort(off[-1])[np.isfinite(off[-1]).sum() // 2]
    assert world.draw is not None
    film = [
        world.draw(CartPoleState(motion, 0)).replace("-260 -140 520 200", "-105 -112 210 140").replace(old, new)
        for old, new, motions in ((svg.ORANGE, svg.BLUE, states[0]), ("", "", states[1]))
        for motion in motions[::4, one]
    ]
    pair = lambda x: {"imagined": (count, x[0][:, one]), "real": (count, x[1][:, one])}
    rows = [
        viz.curves(pair(angles), "One plan: angle of the pole", "step", "degrees from upright"),
        viz.curves(pair(values), "One plan: value", "step", "expected return, discounted"),
        _off(
            {"imagined": off, "if the pole stood still": abs(angles[1] - angles[1][0])},
            "All plans: angle",
            "off by, degrees",
        ),
        _off({"imagined": abs(values[0] - values[1])}, "All plans: value", "off by"),
    ]
    middle = np.nanmedian(off, 1)
    says = f"The angle is off by {middle[10]:.1f} degrees after 10 steps, by {middle[20]:.1f} after 20 (median)."
    title = "CartPole: plans in a learned model (blue), and what happens (orange)"
    return sheet(
        title, says, (80, *film[: len(film) // 2]), (80, *film[len(film) // 2 :]), (240, *rows[:2]), (240, *rows[2:])
    )


def _off(errors: dict[str, np.ndarray], title: str, y: str) -> viz.Picture:
    """Medians over plans by step, and as a band the quartiles of what is imagined."""
    steps = {name: range(len(error)) for name, error in errors.items()}
    curves = {name: (steps[name], np.nanmedian(error, 1)) for name, error in errors.items()}
    quartiles = {"imagined": tuple(np.nanquantile(errors["imagined"], (0.25, 0.75), axis=1))}
    return viz.curves(curves, title, "step", y, quartiles)
