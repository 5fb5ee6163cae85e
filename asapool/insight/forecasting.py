"""Forecast how pooling changes the graphs of a data set, before any training: pieces, density and memory per level.

The fitness that will choose the clusters is not known yet, so nodes are kept at random, ⌈kN⌉ of each graph; the
pooled edges are then exactly those of TopK or ASAP. The results are averages over several random selections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from asapool.errors import InputError
from asapool.kernels.ratio import check_ratio, kept_count
from asapool.theory.graphs import positive

Array = np.ndarray[Any, np.dtype[Any]]
METHODS: tuple[Literal["topk", "asap"], ...] = ("topk", "asap")


@dataclass(frozen=True, kw_only=True)
class LevelForecast:
    """Averages per graph after one pooling step; level 0 is the input."""

    method: Literal["input", "topk", "asap"]
    level: int
    nodes: float
    edges: float  # undirected, self-loops not counted
    density: float  # edges per pair of nodes, over graphs of at least two nodes
    pieces: float  # connected components
    split: float  # share of graphs in more pieces than the input was
    isolated: float  # share of nodes without a neighbour
    bytes: float  # the packed graph, its weights and its features
    bytes_largest: float  # the same for the largest sampled graph


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The levels of both methods, and advice."""

    ratio: float | int
    hops: int
    channels: int
    graphs: int  # graphs in the data set
    sampled: int  # number of sampled graphs, with repetition
    levels: tuple[LevelForecast, ...]
    advice: tuple[str, ...]

    def of(self, method: str) -> list[LevelForecast]:
        """The input and the levels of one method."""
        return [level for level in self.levels if level.method in ("input", method)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def forecast(
    rowptr: Array, col: Array, ptr: Array, ratio: float | int = 0.5, levels: int = 3, *, hops: int = 1,
    channels: int = 64, samples: int = 4, max_graphs: int = 256, seed: int = 0,
) -> Forecast:  # fmt: skip
    """Forecast the pooled graphs of TopK and of ASAP, level by level, and suggest what to change if they look bad.

    rowptr (N+1,), col (E,): the rows of all graphs, concatenated; ptr (B+1,): first node of each graph.
    Each of `samples` draws uses up to max_graphs graphs. channels: features per node, for the memory.

    >>> ring = np.arange(12)
    >>> col = np.stack([(ring - 1) % 12, (ring + 1) % 12], axis=1).reshape(-1)
    >>> result = forecast(np.arange(0, 25, 2), col, np.array([0, 12]), ratio=0.5, levels=1)
    >>> [(level.method, level.nodes, level.pieces) for level in result.levels if level.method != "topk"]
    [('input', 12.0, 1.0), ('asap', 6.0, 1.0)]
    """
    rowptr, col, ptr = (np.asarray(a, dtype=np.int64) for a in (rowptr, col, ptr))
    check_graphs(rowptr, col, ptr)
    ratio = check_ratio(ratio)
    for name, value in (("levels", levels), ("hops", hops), ("channels", channels), ("samples", samples)):
        positive(name, value)
    tally = _sample(rowptr, col, ptr, ratio, levels, hops, channels, samples, positive("max_graphs", max_graphs), seed)

    def pieces_at(other: float) -> dict[tuple[str, int], float]:
        few = _sample(rowptr, col, ptr, other, levels, hops, channels, 1, min(max_graphs, 64), seed)
        return {(level.method, level.level): level.pieces for level in few}

    return Forecast(
        ratio=ratio, hops=hops, channels=channels, graphs=len(ptr) - 1,
        sampled=samples * min(max_graphs, len(ptr) - 1), levels=tuple(tally),
        advice=tuple(advise(tally, ratio, hops, pieces_at)),
    )  # fmt: skip


def _sample(
    rowptr: Array, col: Array, ptr: Array, ratio: float | int, levels: int, hops: int, channels: int,
    samples: int, max_graphs: int, seed: int,
) -> list[LevelForecast]:  # fmt: skip
    rng = np.random.default_rng(seed)
    seen: dict[tuple[str, int], list[dict[str, Array]]] = {}
    for _ in range(samples):
        B = len(ptr) - 1
        graphs = np.arange(B) if max_graphs >= B else np.sort(rng.choice(B, max_graphs, replace=False))
        A, size = cut(rowptr, col, ptr, graphs)
        start = _measure(A, size, channels, None)
        seen.setdefault(("input", 0), []).append(start)
        for method in METHODS:
            now, N = A, size
            for level in range(1, levels + 1):
                now, N, _ = pool_at_random(now, N, kept_count(N, ratio), method, hops, rng)
                seen.setdefault((method, level), []).append(_measure(now, N, channels, start["pieces"]))
    return [_average(method, level, rows) for (method, level), rows in sorted(seen.items(), key=_input_first)]


def _input_first(item: tuple[tuple[str, int], Any]) -> tuple[int, int]:
    (method, level), _ = item
    return (("input", *METHODS).index(method), level)


def cut(rowptr: Array, col: Array, ptr: Array, graphs: Array) -> tuple[Any, Array]:
    """The symmetric pattern of the chosen graphs, without its diagonal, and the size of each."""
    from scipy.sparse import csr_array

    N = len(rowptr) - 1
    A = csr_array((np.ones(len(col), dtype=np.float32), col, rowptr), shape=(N, N))
    size = np.diff(ptr)[graphs]
    nodes = np.repeat(ptr[graphs] - np.concatenate([[0], np.cumsum(size)[:-1]]), size) + np.arange(size.sum())
    A = A[nodes][:, nodes]
    return _pattern(A + A.T), size


def _pattern(A: Any) -> Any:
    """Ones where A has an entry off the diagonal."""
    from scipy.sparse import csr_array

    A = A.tocoo()
    off = (A.row != A.col) & (A.data != 0)
    return csr_array((np.ones(int(off.sum()), dtype=np.float32), (A.row[off], A.col[off])), shape=A.shape)


def pool_at_random(
    A: Any, size: Array, keep: Array, method: str, hops: int, rng: np.random.Generator
) -> tuple[Any, Array, Any]:
    """Keep `keep` random nodes of every graph: TopK keeps the edges between them, ASAP takes Ŝᵀ(A + I)Ŝ.

    Returns the pooled pattern, the sizes, and Ŝᵀ (K, N).
    """
    from scipy.sparse import eye_array

    batch = np.repeat(np.arange(len(size)), size)
    order = np.lexsort((rng.random(len(batch)), batch))
    first = np.cumsum(size) - size
    rank = np.arange(len(batch)) - first[batch]  # `order` is sorted by graph, so its batch is `batch` itself
    chosen = np.sort(order[rank < keep[batch]])
    identity = eye_array(A.shape[0], dtype=np.float32, format="csr")
    if method == "topk":
        return A[chosen][:, chosen], keep, identity[chosen]
    hat = A + identity
    S = hat[chosen]
    for _ in range(hops - 1):
        S = S @ hat
    return _pattern(S @ hat @ S.T), keep, S


def _measure(A: Any, size: Array, channels: int, pieces_before: Array | None) -> dict[str, Array]:
    """Per graph: nodes, edges, density, pieces, split, isolated nodes, bytes."""
    from scipy.sparse.csgraph import connected_components

    B = len(size)
    batch = np.repeat(np.arange(B), size)
    degree = np.diff(A.indptr)
    edges = np.bincount(batch, weights=degree, minlength=B) / 2
    count, label = connected_components(A, directed=False)
    home = np.zeros(count, dtype=np.int64)
    home[label] = batch
    pieces = np.bincount(home, minlength=B)
    pairs = size * (size - 1) / 2
    density = np.divide(edges, pairs, out=np.full(B, np.nan), where=pairs > 0)
    # kernels.Pattern: col, col_t, edge_t per entry and rowptr, rowptr_t, diag per node, 8 bytes each; floats take 4
    room = (2 * edges + size) * (3 * 8 + 4) + size * (3 * 8 + 4 * channels)
    before = pieces if pieces_before is None else pieces_before
    isolated = np.bincount(batch, weights=degree == 0, minlength=B)
    return {
        "nodes": size, "edges": edges, "density": density, "pieces": pieces, "split": pieces > before,
        "isolated": isolated, "bytes": room,
    }  # fmt: skip


def _average(method: Any, level: int, rows: list[dict[str, Array]]) -> LevelForecast:
    all_of = {name: np.concatenate([row[name] for row in rows]).astype(float) for name in rows[0]}
    density = all_of["density"][~np.isnan(all_of["density"])]
    return LevelForecast(
        method=method, level=level, nodes=float(all_of["nodes"].mean()), edges=float(all_of["edges"].mean()),
        density=float(density.mean()) if len(density) else 0.0, pieces=float(all_of["pieces"].mean()),
        split=float(all_of["split"].mean()), isolated=float(all_of["isolated"].sum() / all_of["nodes"].sum()),
        bytes=float(all_of["bytes"].mean()), bytes_largest=float(all_of["bytes"].max()),
    )  # fmt: skip


def check_graphs(rowptr: Array, col: Array, ptr: Array) -> None:
    """Validate the packed arrays of a data set."""
    N = len(rowptr) - 1
    if len(ptr) < 2 or ptr[0] != 0 or ptr[-1] != N or (np.diff(ptr) < 1).any():
        raise InputError(f"ptr must increase from 0 to the number of nodes, {N}. Leave out empty graphs.")
    if N < 1 or rowptr[0] != 0 or rowptr[-1] != len(col) or (np.diff(rowptr) < 0).any():
        raise InputError(f"rowptr must increase from 0 to the number of edges, {len(col)}. Pass one CSR matrix.")
    if len(col) and (col.min() < 0 or col.max() >= N):
        raise InputError(f"col must contain nodes 0 to {N - 1}, got {col.min()} to {col.max()}. Renumber the nodes.")


ISOLATED = 0.2  # share of nodes without a neighbour above which a level counts as disconnected
SPLIT = 0.5  # share of graphs that fall apart above which a level counts as disconnected
DENSE = 0.5  # share of joined pairs above which a pooled graph counts as dense
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
        of_method = [level for level in levels if level.method == method]
        apart = next((level for level in of_method if level.isolated >= ISOLATED or level.split >= SPLIT), None)
        if apart:
            sentences.append(_apart(apart, at, ratio, pieces_at))
        dense = next((level for level in of_method if level.density >= DENSE and level.nodes >= FEW), None)
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
    """What the corrected Theorem 2 guarantees for this ratio on every connected graph of at least two nodes.

    k ≥ 1/(h + 1) forces an edge: ⌈kN⌉ > max(1, ⌊(N − 1)/(h + 1)⌋), if at least two nodes are kept

    >>> guarantee(0.5, 1)[:58]
    'Ratio 0.5 guarantees an edge if ASAP keeps two nodes of a '
    """
    if isinstance(ratio, int):
        return (
            f"Keeping {ratio} nodes of every graph does not guarantee an edge in large graphs: "
            f"on trees of N nodes ASAP needs more than (N − 1)/{hops + 1} of them and TopK needs all."
        )
    if ratio * (hops + 1) >= 1:
        sure = "" if ratio == 1 else "; TopK needs a ratio above 1 − 1/N for that"
        return f"Ratio {ratio} guarantees an edge if ASAP keeps two nodes of a connected graph{sure}."
    return (
        f"Ratio {ratio} is below 1/{hops + 1}, the ratio at which ASAP always has an edge; "
        "whether an edge is left depends on the graphs and on which clusters are kept."
    )


def _apart(
    level: LevelForecast, at: dict[tuple[str, int], LevelForecast], ratio: float | int,
    pieces_at: Callable[[float], dict[tuple[str, int], float]],
) -> str:  # fmt: skip
    before, key = at["input", 0].pieces, (level.method, level.level)
    text = (
        f"{NAMES[level.method]}, level {level.level}: {level.nodes:.1f} nodes in {level.pieces:.1f} pieces "
        f"(the input has {before:.1f}), {level.isolated:.0%} of the nodes without a neighbour, "
        "and messages cannot pass between pieces;"
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
        options.append("use larger clusters (hops=2)")
    return f"{text} {', or '.join(options)}."


def _dense(level: LevelForecast) -> str:
    fewer = f", or use {level.level - 1} {_plural('level', level.level - 1)}" if level.level > 1 else ""
    return (
        f"{NAMES[level.method]}, level {level.level}: {level.density:.0%} of all pairs are joined, "
        f"{2 * level.edges / level.nodes:.0f} neighbours per node and up to {size(level.bytes_largest)} per graph, "
        f"so the pooled graph has little structure left; limit the edges (max_neighbours of ASAPooling){fewer}."
    )


def size(count: float) -> str:
    """A number of bytes as text.

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
