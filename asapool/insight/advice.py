"""Plain sentences about a forecast: what will go wrong at which level, and what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asapool.insight.forecasting import LevelForecast

ISOLATED = 0.2  # share of nodes without a neighbour from which message passing is reported to stop
SPLIT = 0.5  # share of graphs that fall apart from which a level is called disconnected
DENSE = 0.5  # share of joined pairs from which a pooled graph is called dense
FEW = 3.0  # nodes per graph below which a level has nothing left to pool
NAMES = {"topk": "TopK", "asap": "ASAP"}


def advise(
    levels: list[LevelForecast],
    ratio: float | int,
    hops: int,
    pieces_at: Callable[[float], dict[tuple[str, int], float]],
) -> list[str]:
    """One sentence per problem, the guarantee first; pieces_at forecasts another ratio, to suggest a better one."""
    sentences = [guarantee(ratio, hops)]
    at: dict[tuple[str, int], LevelForecast] = {(level.method, level.level): level for level in levels}
    for method in ("topk", "asap"):
        own = [level for level in levels if level.method == method]
        apart = next((level for level in own if level.isolated >= ISOLATED or level.split >= SPLIT), None)
        if apart:
            sentences.append(_apart(apart, at, ratio, pieces_at))
        dense = next((level for level in own if level.density >= DENSE and level.nodes >= FEW), None)
        if dense:
            sentences.append(_dense(dense))
    few = next((level for level in levels if level.method == "asap" and level.nodes < FEW), None)
    if few:
        sentences.append(
            f"Level {few.level} leaves {few.nodes:.1f} nodes per graph, too few to pool further; "
            f"use {max(1, few.level - 1)} {_plural('level', max(1, few.level - 1))} or a larger ratio."
        )
    return sentences


def guarantee(ratio: float | int, hops: int) -> str:
    """What the corrected Theorem 2 promises for this ratio on every connected graph of at least two nodes.

    k ≥ 1/(h + 1) forces an edge: ⌈kN⌉ > max(1, ⌊(N − 1)/(h + 1)⌋), once two nodes are kept

    >>> guarantee(0.5, 1)[:58]
    'Ratio 0.5 guarantees an edge in every ASAP graph that keep'
    """
    if isinstance(ratio, int):
        return (
            f"Keeping {ratio} nodes of every graph guarantees no edge in large graphs: "
            f"on trees of N nodes ASAP needs more than (N − 1)/{hops + 1} of them and TopK all."
        )
    if ratio * (hops + 1) >= 1:
        sure = "" if ratio == 1 else "; TopK needs a ratio above 1 − 1/N for that"
        return f"Ratio {ratio} guarantees an edge in every ASAP graph that keeps two nodes of a connected one{sure}."
    return (
        f"Ratio {ratio} is below 1/{hops + 1}, from which on ASAP always has an edge; "
        "whether one is left depends on the graphs and on which clusters are kept."
    )


def _apart(
    level: LevelForecast, at: dict[tuple[str, int], LevelForecast], ratio: float | int,
    pieces_at: Callable[[float], dict[tuple[str, int], float]],
) -> str:  # fmt: skip
    before, key = at["input", 0].pieces, (level.method, level.level)
    text = (
        f"{NAMES[level.method]}, level {level.level}: {level.nodes:.1f} nodes in {level.pieces:.1f} pieces "
        f"(the input has {before:.1f}), {level.isolated:.0%} of the nodes without a neighbour, "
        "and messages cannot cross from piece to piece;"
    )
    options = []
    if isinstance(ratio, float):
        better = next((r for r in (0.6, 0.7, 0.8, 0.9) if r > ratio and pieces_at(r)[key] <= before + 1), None)
        if better:
            options.append(f"keep more (ratio {better})")
    if level.level > 1:
        options.append(f"use {level.level - 1} {_plural('level', level.level - 1)}")
    if level.method == "topk":
        other = at["asap", level.level]
        options.append(f"pool with ASAP ({other.pieces:.1f} pieces)")
    else:
        options.append("let clusters be wider (hops=2)")
    return f"{text} {', or '.join(options)}."


def _dense(level: LevelForecast) -> str:
    fewer = f", or use {level.level - 1} {_plural('level', level.level - 1)}" if level.level > 1 else ""
    return (
        f"{NAMES[level.method]}, level {level.level}: {level.density:.0%} of all pairs are joined, "
        f"{2 * level.edges / level.nodes:.0f} neighbours per node and up to {size(level.bytes_largest)} per graph, "
        f"so the pooled graph says little about structure; cap the edges (max_neighbours on ASAPooling){fewer}."
    )


def size(count: float) -> str:
    """Bytes in words.

    >>> size(900), size(20_000), size(3_500_000)
    ('900 B', '19.5 KiB', '3.3 MiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
