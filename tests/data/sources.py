"""Small sources that tests write to disk, each small enough to draw."""

import zipfile
from pathlib import Path

import numpy as np

from asapool.data import GraphSet

# two graphs: a path 1-2-3 of labels 5, 7, 5 and class 1, an edge 4-5 of labels 7, 6 and class -1
TU = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "5\n7\n5\n7\n6\n",
    "node_attributes": "0.5, 1\n-1, 2\n1e-1, 3\n0, 4\n2, 5\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n",
    "edge_attributes": "1.5\n1.5\n2.5\n2.5\n0.5\n0.5\n",
}


def write_tu(folder: Path, name: str = "TINY", **changes) -> Path:
    """The two graphs above as a TU folder; a change replaces the text of a file, None leaves it out."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for part, text in (TU | changes).items():
        if text is not None:
            (place / f"{name}_{part}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def zip_folder(folder: Path, path: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{prefix or folder.name}/{file.name}")
    return path


def random_set(seed: int = 0, graphs: int = 7, weighted: bool = True) -> GraphSet:
    """Random directed weighted graphs with every field that a set can have."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, graphs)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    rows, cols = [], []
    for a, n in zip(ptr, sizes, strict=False):
        i, j = np.nonzero(rng.random((n, n)) < 0.5)
        rows.append(i + a)
        cols.append(j + a)
    row, col = np.concatenate(rows), np.concatenate(cols)
    return GraphSet(
        x=rng.standard_normal((ptr[-1], 3)),
        ptr=ptr,
        rowptr=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=ptr[-1]))]),
        col=col,
        weight=rng.random(len(col)) if weighted else None,
        y=rng.integers(-1, 2, graphs),
        class_names=("no", "yes"),
        ids=tuple(f"g{k}" for k in range(graphs)),
        truth=rng.integers(0, 2, ptr[-1]),
        edge_attr=rng.standard_normal((len(col), 2)),
        source_text=tuple(f"text {k}" for k in range(graphs)),
        name="random",
        recipe={"version": 1, "kind": "graph", "features": "attributes", "attributes": ["x0", "x1", "x2"]},
    )


def dense(graphs: GraphSet, i: int) -> np.ndarray:
    """Adjacency of graph i with entry (i, j) = weight of j -> i."""
    a, b = graphs.ptr[i], graphs.ptr[i + 1]
    out = np.zeros((b - a, b - a), np.float32)
    for v in range(a, b):
        for e in range(graphs.rowptr[v], graphs.rowptr[v + 1]):
            out[v - a, graphs.col[e] - a] = 1 if graphs.weight is None else graphs.weight[e]
    return out
