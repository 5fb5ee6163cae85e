"""Pictures for papers and slides, drawn by matplotlib: SVG text as PNG or PDF, and figures as files."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asapool.errors import MissingExtraError
from asapool.files import writing

FORMATS = ("svg", "png", "pdf")
DPI = 200  # of PNG files
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "asapool", "pdf.fonttype": 42, "font.size": 9.0}
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
INHERITED = ("fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "stroke-dasharray", "stroke-linecap",
             "stroke-linejoin", "opacity")  # fmt: skip


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure of a size in inches, without a window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def image(figure: Any, kind: str, dpi: float = DPI) -> bytes:
    """A figure as the bytes of a file; the same figure always gives the same bytes."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(out, format=kind, dpi=dpi, metadata=METADATA[kind], facecolor="white")
    return out.getvalue()


def save_figures(figures: Mapping[str, Any], folder: Path, kinds: Iterable[str] = FORMATS) -> list[Path]:
    """Write every figure in every format, each file atomically; return their paths."""
    written = []
    for name, figure in figures.items():
        for kind in kinds:
            path = folder / f"{name}.{kind}"
            drawn = image(figure, kind)
            with writing(path) as out:
                out.write(drawn)
            written.append(path)
    return written


def svg_image(svg: str, kind: str) -> bytes:
    """An SVG drawing of this package as PNG or PDF of the same size, on white.

    Handles what `pictures` and RDKit write: straight and curved paths with absolute coordinates, circles, translated
    groups, and hexadecimal colours.
    """
    root = ET.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    left, top, across, down = map(float, root.attrib["viewBox"].split())
    figure = new_figure(width / 100, height / 100)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, left + across), ylim=(top + down, top))
    axes.axis("off")
    _draw(axes, root, {}, np.zeros(2), 72 / 100 * width / across)
    return image(figure, kind, dpi=100)


def _draw(axes: Any, element: ET.Element, inherited: Mapping[str, str], shift: Any, points: float) -> None:
    """Add an element and its children; points: width in points of a line that is one unit wide."""
    from matplotlib.patches import Circle, PathPatch

    declared = dict(re.findall(r"([\w-]+)\s*:\s*([^;]+)", element.get("style", "")))
    declared |= {name: value for name in INHERITED if (value := element.get(name)) is not None}
    values = {**inherited, **declared}
    if "opacity" in declared:  # the opacities of a group and its children multiply
        values["opacity"] = str(float(declared["opacity"]) * float(inherited.get("opacity", 1)))
    moved = re.match(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", element.get("transform", ""))
    shift = shift + np.array([float(v) for v in moved.groups()]) if moved else shift
    tag = element.tag.rpartition("}")[2]
    if tag == "path" and element.get("d"):
        path = _path(element.attrib["d"], shift)
        style = _style(values, points)
        if element.get("paint-order") == "stroke":  # the outline is below the fill
            axes.add_patch(PathPatch(path, **style | {"facecolor": "none"}))
            style |= {"edgecolor": "none"}
        axes.add_patch(PathPatch(path, **style))
    elif tag == "circle":
        x, y = np.array([float(element.attrib["cx"]), float(element.attrib["cy"])]) + shift
        axes.add_patch(Circle((x, y), float(element.attrib["r"]), **_style(values, points)))
    for child in element:
        _draw(axes, child, values, shift, points)


def _path(d: str, shift: Any) -> Any:
    """A matplotlib path from the attribute d of an SVG path, with M, L, Q, C and Z."""
    from matplotlib.path import Path as Outline

    codes: list[int] = []
    places: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLQCZ])([^MLQCZ]*)", d):
        if command == "Z":
            codes.append(int(Outline.CLOSEPOLY))
            places.append((0.0, 0.0))
            continue
        values = [float(v) for v in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", numbers)]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        if command == "L" and places and pairs[0] == places[-1]:
            pairs[0] = (pairs[0][0] + 0.05, pairs[0][1])  # a line of zero length with round ends is a disc in SVG
        kind = {"M": Outline.MOVETO, "L": Outline.LINETO, "Q": Outline.CURVE3, "C": Outline.CURVE4}[command]
        codes += [int(kind)] * len(pairs)
        places += pairs
    return Outline(np.array(places) + shift, codes)


def _style(values: Mapping[str, str], points: float) -> dict[str, Any]:
    from matplotlib.colors import to_rgba

    opacity = float(values.get("opacity", 1))

    def colour(name: str, otherwise: str) -> Any:
        value = values.get(name, otherwise).strip()
        return "none" if value == "none" else to_rgba(value, opacity * float(values.get(f"{name}-opacity", 1)))

    ends = {"round": "round", "square": "projecting"}.get(values.get("stroke-linecap", ""), "butt")
    joint = values.get("stroke-linejoin", "miter")
    wide = float(values.get("stroke-width", "1").removesuffix("px")) * points
    dashes = [float(v) * points / max(wide, 1e-6) for v in re.findall(r"[\d.]+", values.get("stroke-dasharray", ""))]
    line: Any = (0, dashes) if dashes else "solid"  # matplotlib measures dashes in line widths
    return {
        "facecolor": colour("fill", "#000000"), "edgecolor": colour("stroke", "none"), "linewidth": wide,
        "capstyle": ends, "joinstyle": joint if joint in ("round", "bevel") else "miter", "linestyle": line,
        "snap": False,
    }  # fmt: skip
