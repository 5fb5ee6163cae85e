"""Pictures of the theory: k* against N on trees and on paths, the learning curves of Theorem 1, optimum trees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asapool.errors import DataError
from asapool.files import writing
from asapool.theory.bounds import Family, Method, k_star, k_star_limit, k_star_printed
from asapool.theory.exhaustive import TreeRow
from asapool.theory.extremum import Training
from asapool.theory.graphs import balanced_starlike_tree, starlike_tree
from asapool.theory.optimum_sets import scatter
from asapool.theory.report import Report
from asapool.theory.selections import SelectionRow

COLOURS = {"topk": "#b5451b", "asap": "#1f5f99"}
NAMES = {"topk": "TopK, SAGPool", "asap": "ASAP"}
INK, PALE = "#222222", "#9a9a9a"
WIDTH, HEIGHT = 820, 480


def all_figures(report: Report) -> dict[str, Any]:
    """Every figure by file name, as plotly figures."""
    return {
        "theory-trees": ratio_figure("tree", report.trees, report.selections),
        "theory-paths": ratio_figure("path", (), report.selections),
        "theory-extremum": training_figure(report.trainings),
        "theory-optimum": tree_figure(),
    }


def ratio_figure(family: Family, trees: Sequence[TreeRow], brute: Sequence[SelectionRow], most: int = 40) -> Any:
    """k* against N: exact, as printed, its limit, and what the census and the operators found."""
    from plotly.graph_objects import Figure

    figure = Figure()
    sizes = list(range(2, most + 1))
    methods: tuple[Method, ...] = ("topk", "asap")
    for method in methods:
        colour, name, apart = COLOURS[method], NAMES[method], 2 if method == "topk" else 4
        printed = [(N, float(k_star_printed(N, family, method))) for N in sizes]
        _line(figure, sizes, [float(k_star(N, family, method)) for N in sizes], f"{name}: exact k*", colour)
        shown = [(N, k) for N, k in printed if 0 <= k <= 1]
        _line(figure, [N for N, _ in shown], [k for _, k in shown], f"{name}: as printed", colour, "dot", 1.5)
        limit = float(k_star_limit(family, method))
        _level(figure, 2, most, limit, f"limit {limit:g}", colour, "dash", above=family == "tree")
        rows = [row for row in trees if row.h == apart and row.N >= 2]
        _dots(figure, [r.N for r in rows], [r.best / r.N for r in rows], f"{name}: all trees", colour, "circle", 7)
        tried = [row for row in brute if row.family == family and row.method == method and row.h == 1 and row.N >= 2]
        found = [row.edgeless / row.N for row in tried]
        _dots(figure, [row.N for row in tried], found, f"{name}: all selections", colour, "circle-open", 13)
    word = "trees" if family == "tree" else "paths"
    _dress(figure, f"Sampling ratio above which every pooled graph has an edge: {word}", "nodes N", "k*", legend=True)
    figure.update_yaxes(range=[0, 1.06])
    figure.update_xaxes(range=[1, most + 1])
    return figure


def training_figure(runs: Sequence[Training]) -> Any:
    """Accuracy on unseen graphs while LEConv and GCN learn who stands out from its neighbours."""
    from plotly.graph_objects import Figure

    figure = Figure()
    tasks = {"above": ("above its neighbours", "solid"), "maximum": ("local maximum", "dash")}
    colours = {"leconv": COLOURS["asap"], "gcn": COLOURS["topk"]}
    names = {"leconv": "LEConv", "gcn": "GCN"}
    for run in runs:
        word, dash = tasks[run.task]
        _line(figure, list(run.steps), list(run.curve), f"{names[run.layer]}: {word}", colours[run.layer], dash=dash)
        if run.layer == "gcn":
            _level(figure, 0, run.steps[-1], run.bound, f"bound for GCN: {run.bound:.3g}", INK, "dot")
    _dress(figure, "Theorem 1: which nodes stand out? Accuracy on unseen rings", "step", "accuracy", legend=True)
    figure.update_yaxes(range=[0.4, 1.04])
    return figure


def tree_figure() -> Any:
    """Two optimum trees for h = 4: the balanced starlike tree, and one that contains no smaller optimum tree."""
    from plotly.graph_objects import Figure

    figure = Figure()
    pictures = (
        (-2.8, balanced_starlike_tree(9, 4), "balanced starlike, N = 9, h = 4: n* = 4"),
        (2.8, starlike_tree([3, 3, 1]), "legs 3, 3, 1, N = 8, h = 4: n* = 3,<br>but 2 after cutting any leaf"),
    )
    for centre, tree, text in pictures:
        place = _fan(tree)
        chosen = set(scatter(tree, 4))
        for i, around in enumerate(tree):
            for j in around:
                if i < j:
                    figure.add_shape(
                        type="line", layer="below", line={"color": PALE, "width": 2},
                        x0=centre + place[i][0], y0=place[i][1], x1=centre + place[j][0], y1=place[j][1],
                    )  # fmt: skip
        for kind, colour in ((True, COLOURS["asap"]), (False, "#ffffff")):
            nodes = [i for i in range(len(tree)) if (i in chosen) == kind]
            figure.add_scatter(
                x=[centre + place[i][0] for i in nodes], y=[place[i][1] for i in nodes], mode="markers",
                marker={"size": 20, "color": colour, "line": {"color": INK, "width": 1.5}},
            )  # fmt: skip
        figure.add_annotation(x=centre, y=-2.15, text=text, showarrow=False, yanchor="top")
    _dress(figure, "Optimum trees: filled nodes lie pairwise at least four hops apart", "", "", legend=False)
    figure.update_xaxes(visible=False, range=[-6, 6])
    figure.update_yaxes(visible=False, range=[-3.1, 2.75], scaleanchor="x")
    return figure


def write_figures(figures: dict[str, Any], folder: Path) -> list[Path]:
    """Write figures as SVG and PNG, or as self-contained HTML pages where no browser can draw; returns the files.

    Everything is drawn under a hidden name first and then renamed, so that no half-written figure is ever seen.
    """
    with TemporaryDirectory(dir=make_folder(folder), prefix=".drawing-") as hidden:
        files = _draw(figures, Path(hidden)) or _pages(figures, Path(hidden))
        return [file.replace(folder / file.name) for file in files]


def write_verdicts(report: Report, folder: Path) -> Path:
    """Write the whole report as verdicts.json; the old file stays until the new one is complete."""
    path = folder / "verdicts.json"
    with writing(path) as out:
        out.write(json.dumps(report.to_dict(), indent=2).encode() + b"\n")
    return path


def make_folder(folder: Path) -> Path:
    """The folder, made if it is missing; said at once if it cannot be, before any work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be a folder for figures ({error.strerror}). Choose another name.") from None
    return folder


def _draw(figures: dict[str, Any], folder: Path) -> list[Path]:
    """SVG and PNG files drawn by one browser, or none if there is no browser."""
    if find_spec("kaleido") is None:
        return []
    from plotly.io import write_images

    files = [folder / f"{name}.{kind}" for kind in ("svg", "png") for name in figures]
    try:
        scale = [1] * len(figures) + [2] * len(figures)
        write_images(fig=[*figures.values()] * 2, file=files, width=WIDTH, height=HEIGHT, scale=scale)
    except Exception:  # no Chromium, or one that does not start: each cause has an error of its own there
        return []
    return files


def _pages(figures: dict[str, Any], folder: Path) -> list[Path]:
    for name, figure in figures.items():
        figure.write_html(folder / f"{name}.html", include_plotlyjs=True, full_html=True)
    return [folder / f"{name}.html" for name in figures]


def _fan(tree: Sequence[Sequence[int]]) -> list[tuple[float, float]]:
    """Places of a starlike tree's nodes: the root in the middle, the legs like the hands of a clock."""
    from math import cos, pi, sin

    place = [(0.0, 0.0)] * len(tree)
    for leg, first in enumerate(tree[0]):
        angle = pi / 2 - 2 * pi * leg / len(tree[0])
        node, before, height = first, 0, 1
        while True:
            place[node] = (0.85 * height * cos(angle), 0.85 * height * sin(angle))
            below = [j for j in tree[node] if j != before]
            if not below:
                break
            node, before, height = below[0], node, height + 1
    return place


def _line(
    figure: Any, x: Sequence[int], y: Sequence[float], name: str, colour: str, dash: str = "solid", width: float = 2.5
) -> None:
    figure.add_scatter(x=x, y=y, name=name, mode="lines", line={"color": colour, "width": width, "dash": dash})


def _level(figure: Any, left: int, right: int, y: float, text: str, colour: str, dash: str, above: bool = True) -> None:
    """A thin horizontal line with its name at the right end."""
    side = "bottom" if above else "top"
    figure.add_shape(type="line", x0=left, x1=right, y0=y, y1=y, line={"color": colour, "width": 1, "dash": dash})
    font = {"color": colour}
    figure.add_annotation(x=right, y=y, text=text, showarrow=False, xanchor="right", yanchor=side, font=font)


def _dots(figure: Any, x: Sequence[int], y: Sequence[float], name: str, colour: str, symbol: str, size: int) -> None:
    if x:
        marker = {"color": colour, "symbol": symbol, "size": size, "line": {"width": 1.5}}
        figure.add_scatter(x=x, y=y, name=name, mode="markers", marker=marker)


def _dress(figure: Any, title: str, x: str, y: str, legend: bool) -> None:
    figure.update_layout(
        title={"text": title, "font": {"size": 17}, "x": 0.02}, template="plotly_white", width=WIDTH, height=HEIGHT,
        font={"family": "DejaVu Sans, Arial, sans-serif", "size": 13, "color": INK}, xaxis_title=x, yaxis_title=y,
        margin={"l": 60, "r": 20, "t": 60, "b": 50}, showlegend=legend,
        legend={"x": 1.01, "y": 1, "font": {"size": 12}},
    )  # fmt: skip
