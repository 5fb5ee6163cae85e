"""Figures of the theory: k* against N on trees and on paths, the learning curves of Theorem 1, optimum trees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import cos, pi, sin
from pathlib import Path
from typing import Any

from asapool.errors import WriteError
from asapool.files import writing
from asapool.insight.drawing.figure import new_figure
from asapool.theory.bounds import Family, Method, k_star, k_star_limit, k_star_printed, scatter
from asapool.theory.exhaustive import TreeRow
from asapool.theory.extremum import Training
from asapool.theory.graphs import balanced_starlike_tree, starlike_tree
from asapool.theory.report import Report
from asapool.theory.selections import SelectionRow

COLOURS = {"topk": "#b5451b", "asap": "#1f5f99"}
NAMES = {"topk": "TopK, SAGPool", "asap": "ASAP"}
INK, PALE = "#222222", "#9a9a9a"
SIZE = (8.2, 4.8)  # inches


def all_figures(report: Report) -> dict[str, Any]:
    """Every figure by file name, as matplotlib figures."""
    return {
        "theory-trees": ratio_figure("tree", report.trees, report.selections),
        "theory-paths": ratio_figure("path", (), report.selections),
        "theory-extremum": training_figure(report.trainings),
        "theory-optimum": tree_figure(),
    }


def ratio_figure(family: Family, trees: Sequence[TreeRow], brute: Sequence[SelectionRow], most: int = 40) -> Any:
    """k* against N: exact, as printed, its limit, and the results of the census and of the operators."""
    word = "trees" if family == "tree" else "paths"
    figure, axes = _axes(f"Sampling ratio above which every pooled graph has an edge: {word}", "nodes N", "k*")
    sizes = list(range(2, most + 1))
    methods: tuple[Method, ...] = ("topk", "asap")
    for method in methods:
        colour, name, apart = COLOURS[method], NAMES[method], 2 if method == "topk" else 4
        printed = [(N, float(k_star_printed(N, family, method))) for N in sizes]
        shown = [(N, k) for N, k in printed if 0 <= k <= 1]
        exact = [float(k_star(N, family, method)) for N in sizes]
        axes.plot(sizes, exact, label=f"{name}: exact k*", color=colour, linewidth=2)
        axes.plot(
            [N for N, _ in shown], [k for _, k in shown], label=f"{name}: as printed", color=colour, linestyle=":"
        )
        limit = float(k_star_limit(family, method))
        _level(axes, most, limit, f"limit {limit:g}", colour, "--", above=family == "tree")
        rows = [row for row in trees if row.h == apart and row.N >= 2]
        _dots(axes, [r.N for r in rows], [r.best / r.N for r in rows], f"{name}: all trees", color=colour)
        tried = [row for row in brute if row.family == family and row.method == method and row.h == 1 and row.N >= 2]
        shares = [row.edgeless / row.N for row in tried]
        _dots(axes, [row.N for row in tried], shares, f"{name}: all selections", s=90, edgecolor=colour, color="none")
    axes.set(ylim=(0, 1.06), xlim=(1, most + 1))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def training_figure(runs: Sequence[Training]) -> Any:
    """Accuracy on unseen graphs while LEConv and GCN learn which nodes differ from their neighbours."""
    figure, axes = _axes("Theorem 1: which nodes stand out? Accuracy on unseen rings", "step", "accuracy")
    tasks = {"above": ("above its neighbours", "-"), "maximum": ("local maximum", "--")}
    colours = {"leconv": COLOURS["asap"], "gcn": COLOURS["topk"]}
    names = {"leconv": "LEConv", "gcn": "GCN"}
    for run in runs:
        word, dash = tasks[run.task]
        axes.plot(
            run.steps, run.curve, label=f"{names[run.layer]}: {word}", color=colours[run.layer], linestyle=dash,
            linewidth=2,
        )  # fmt: skip
        if run.layer == "gcn":
            _level(axes, run.steps[-1], run.bound, f"bound for GCN: {run.bound:.3g}", INK, ":")
    axes.set(ylim=(0.4, 1.04))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def tree_figure() -> Any:
    """Two optimum trees for h = 4: the balanced starlike tree, and one that contains no smaller optimum tree."""
    figure, axes = _axes("Optimum trees: filled nodes lie pairwise at least four hops apart", "", "")
    pictures = (
        (-2.8, balanced_starlike_tree(9, 4), "balanced starlike, N = 9, h = 4: n* = 4"),
        (2.8, starlike_tree([3, 3, 1]), "legs 3, 3, 1, N = 8, h = 4: n* = 3,\nbut 2 after cutting any leaf"),
    )
    for centre, tree, text in pictures:
        place = [(centre + x, y) for x, y in _fan(tree)]
        chosen = set(scatter(tree, 4))
        for i, around in enumerate(tree):
            for j in around:
                if i < j:
                    axes.plot(*zip(place[i], place[j], strict=True), color=PALE, linewidth=1.6, zorder=1)
        for kind, colour in ((True, COLOURS["asap"]), (False, "#ffffff")):
            nodes = [place[i] for i in range(len(tree)) if (i in chosen) == kind]
            _dots(axes, [x for x, _ in nodes], [y for _, y in nodes], "", s=190, color=colour, edgecolor=INK)
        axes.text(centre, -2.15, text, ha="center", va="top")
    axes.set(xlim=(-6, 6), ylim=(-3.1, 2.75), aspect="equal")
    axes.axis("off")
    return figure


def write_verdicts(report: Report, folder: Path) -> Path:
    """Write the whole report as verdicts.json; the old file stays until the new one is complete."""
    path = folder / "verdicts.json"
    with writing(path) as out:
        out.write(json.dumps(report.to_dict(), indent=2).encode() + b"\n")
    return path


def make_folder(folder: Path) -> Path:
    """Make the folder if it is missing, before any other work, so that an error is reported at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"{folder}: cannot make a folder for figures ({error.strerror}). Choose another name."
        ) from None
    return folder


def _fan(tree: Sequence[Sequence[int]]) -> list[tuple[float, float]]:
    """Positions of the nodes of a starlike tree: the root in the middle, the legs like spokes."""
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


def _axes(title: str, x: str, y: str) -> tuple[Any, Any]:
    figure = new_figure(*SIZE)
    axes = figure.add_subplot(xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _level(axes: Any, right: float, y: float, text: str, colour: str, dash: str, above: bool = True) -> None:
    """A thin horizontal line with its name at the right end."""
    axes.axhline(y, color=colour, linewidth=0.8, linestyle=dash, gid="level")
    axes.text(right, y, text, color=colour, ha="right", va="bottom" if above else "top")


def _dots(axes: Any, x: Sequence[float], y: Sequence[float], name: str, **style: Any) -> None:
    if x:
        style = {"s": 28, "zorder": 3, "linewidths": 1.2} | style
        axes.scatter(x, y, label=name or None, **style)
