"""Synthetic graphs, seeded and parameterised: motifs, cycles, blocks, chains, and the trees and paths of the theory.

A source such as "synthetic:motifs?graphs=200&seed=3" names a function of this module and its arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt

from asapool.data.assemble import Record, assemble
from asapool.data.graphset import GraphSet
from asapool.data.reading import ReadOptions
from asapool.errors import ConfigError

Pairs = npt.NDArray[np.int64]  # (E, 2), each undirected edge once
Drawn = tuple[int, Pairs, str | None, npt.NDArray[np.int8] | None]  # nodes, edges, class, truth
HOUSE = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4]])  # a square with a roof
MOST = 50_000_000  # limit on the nodes of a set


def motifs(*, graphs: int = 200, nodes: int = 20, seed: int = 0, options: ReadOptions | None = None) -> GraphSet:
    """Random trees with a house of five nodes (class "house") or a ring of five (class "ring"); truth marks the motif.

    Graphs with an even index have a house; every tree has `nodes` nodes, and one edge connects it to the motif.

    >>> graphs = motifs(graphs=2, nodes=3)
    >>> graphs.truth.reshape(2, 8).sum(axis=1).tolist(), graphs.class_names
    ([5, 5], ('house', 'ring'))
    """
    _check_sizes(graphs=graphs, nodes=nodes)

    def make(g: int, rng: np.random.Generator) -> Drawn:
        motif = HOUSE if g % 2 == 0 else _ring(5)
        bridge = np.array([[rng.integers(nodes), nodes + rng.integers(5)]])
        truth = np.repeat(np.array([0, 1], np.int8), [nodes, 5])
        pairs = np.concatenate([_random_tree(nodes, rng), motif + nodes, bridge])
        return nodes + 5, pairs, ("house", "ring")[g % 2], truth

    return _make("motifs", graphs, seed, make, options)


def cycles(*, graphs: int = 200, nodes: int = 20, seed: int = 0, options: ReadOptions | None = None) -> GraphSet:
    """Rings (class "cycle") against paths (class "path") of 3 to nodes nodes: alike everywhere but at the ends."""
    _check_sizes(graphs=graphs, nodes=nodes, least=3)

    def make(g: int, rng: np.random.Generator) -> Drawn:
        n = int(rng.integers(3, nodes + 1))
        return (n, _ring(n), "cycle", None) if g % 2 == 0 else (n, _path(n), "path", None)

    return _make("cycles", graphs, seed, make, options)


def blocks(
    *, graphs: int = 200, nodes: int = 40, parts: int = 4, inside: float = 0.5, across: float = 0.02, seed: int = 0,
    options: ReadOptions | None = None,
) -> GraphSet:  # fmt: skip
    """Stochastic blocks (class "blocks") against random graphs of the same density (class "uniform")."""
    _check_sizes(graphs=graphs, nodes=nodes, parts=parts)
    if not (0 <= inside <= 1 and 0 <= across <= 1):
        raise ConfigError(f"inside and across must lie in [0, 1], got {inside} and {across}")
    if nodes > 5000:
        raise ConfigError(f"nodes must be at most 5000 for blocks, got {nodes}")
    a, b = np.triu_indices(nodes, k=1)
    probability = np.where(a * parts // nodes == b * parts // nodes, inside, across)

    def make(g: int, rng: np.random.Generator) -> Drawn:
        drawn = rng.random(len(a)) < (probability if g % 2 == 0 else probability.mean())
        return nodes, np.stack([a[drawn], b[drawn]], axis=1), ("blocks", "uniform")[g % 2], None

    return _make("blocks", graphs, seed, make, options)


def trees(
    *, graphs: int = 200, nodes: int = 20, height: int = 2, seed: int = 0, options: ReadOptions | None = None
) -> GraphSet:
    """Balanced starlike trees with legs of this height (class "starlike") against random trees (class "random")."""
    _check_sizes(graphs=graphs, nodes=nodes, height=height)

    def make(g: int, rng: np.random.Generator) -> Drawn:
        if g % 2:
            return nodes, _random_tree(nodes, rng), "random", None
        v = np.arange(1, nodes)  # every height-th node starts a new leg at the root
        return nodes, np.stack([np.where((v - 1) % height == 0, 0, v - 1), v], axis=1), "starlike", None

    return _make("trees", graphs, seed, make, options)


def paths(*, graphs: int = 20, nodes: int = 2, seed: int = 0, options: ReadOptions | None = None) -> GraphSet:
    """Paths of nodes, nodes + 1, … nodes, without labels; nothing is random but the numbering of the nodes."""
    _check_sizes(graphs=graphs, nodes=nodes)
    return _make("paths", graphs, seed, lambda g, rng: (nodes + g, _path(nodes + g), None, None), options)


def chains(
    *, graphs: int = 200, distance: int = 8, leaves: float = 0.0, seed: int = 0, options: ReadOptions | None = None
) -> GraphSet:
    """Two chains with a motif at each of the four ends: two triangles and two squares in every graph.

    Class "matched": one chain connects the triangles, the other the squares. Class "crossed": each chain connects a
    triangle and a square. The motifs of a chain are `distance` edges apart, so the classes are indistinguishable within
    distance / 2 hops of any node, and their motif counts are equal. Every inner node of a chain has a leaf with
    probability `leaves`; without leaves all graphs of a class are isomorphic. truth marks the motifs.

    >>> graphs = chains(graphs=2, distance=3)
    >>> graphs.class_names, np.diff(graphs.ptr).tolist(), int(graphs.truth.sum())
    (('crossed', 'matched'), [18, 18], 28)
    """
    _check_sizes("distance", graphs=graphs, distance=distance)
    if not 0 <= leaves <= 1:
        raise ConfigError(f"leaves must lie in [0, 1], got {leaves}")

    def make(g: int, rng: np.random.Generator) -> Drawn:
        ends = ((3, 3), (4, 4)) if g % 2 == 0 else ((3, 4), (3, 4))
        pairs, truth, first = [], [], 0
        for left, right in ends:
            inner = distance - 1  # nodes between the motifs
            link = _path(inner + 2) + first + left - 1  # from the last node of one motif to the first of the other
            pairs += [_ring(left) + first, link, _ring(right) + first + left + inner]
            truth += [1] * left + [0] * inner + [1] * right
            parents = first + left + np.flatnonzero(rng.random(inner) < leaves)
            first += left + inner + right
            pairs.append(np.stack([parents, first + np.arange(len(parents))], axis=1))
            truth += [0] * len(parents)
            first += len(parents)
        return first, np.concatenate(pairs), ("matched", "crossed")[g % 2], np.array(truth, np.int8)

    return _make("chains", graphs, seed, make, options)


def multipartite(
    *, graphs: int = 300, nodes: int = 24, density: float = 0.4, seed: int = 0, options: ReadOptions | None = None
) -> GraphSet:
    """Random graphs of 2, 3 or 4 groups of nodes without an edge inside a group; all have the same expected degree.

    The class is the number of groups. Degrees and short cycles say little about it: a model must find the groups.

    >>> multipartite(graphs=3, nodes=12).class_names
    ('2', '3', '4')
    """
    _check_sizes(graphs=graphs, nodes=nodes)
    if not 0 < density <= 0.5:
        raise ConfigError(f"density must lie in (0, 0.5], got {density}")
    if nodes > 5000:
        raise ConfigError(f"nodes must be at most 5000 for multipartite, got {nodes}")
    a, b = np.triu_indices(nodes, k=1)

    def make(g: int, rng: np.random.Generator) -> Drawn:
        groups = 2 + g % 3
        across = a % groups != b % groups
        probability = min(1.0, density * len(a) / max(1, int(across.sum())))  # same expected edges for any groups
        drawn = across & (rng.random(len(a)) < probability)
        return nodes, np.stack([a[drawn], b[drawn]], axis=1), str(groups), None

    return _make("multipartite", graphs, seed, make, options)


SETS: dict[str, Callable[..., GraphSet]] = {
    "motifs": motifs, "cycles": cycles, "blocks": blocks, "trees": trees, "paths": paths, "chains": chains,
    "multipartite": multipartite,
}  # fmt: skip


def describe() -> dict[str, str]:
    """Every set as a source string → its description and parameters.

    >>> describe()["synthetic:paths"]
    'Paths of nodes, nodes + 1, … nodes, without labels. Parameters: graphs=20, nodes=2, seed=0'
    """
    described = {}
    for name, function in SETS.items():
        sentence = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()).split(";")[0].rstrip(".")
        given = [
            f"{p.name}={p.default}" for p in inspect.signature(function).parameters.values() if p.name != "options"
        ]
        described[f"synthetic:{name}"] = f"{sentence}. Parameters: {', '.join(given)}"
    return described


def make_synthetic(source: str, options: ReadOptions | None = None) -> GraphSet:
    """Make the set that a source such as "synthetic:cycles?graphs=10" describes.

    >>> make_synthetic("synthetic:cycles?graphs=10").class_names
    ('cycle', 'path')
    """
    name, _, query = source.removeprefix("synthetic:").partition("?")
    if name not in SETS:
        raise ConfigError(f"{source}: unknown set {name!r}, expected one of {', '.join(map(repr, SETS))}")
    defaults = {k: p.default for k, p in inspect.signature(SETS[name]).parameters.items() if k != "options"}
    given: dict[str, int | float] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        if key not in defaults:
            raise ConfigError(f"{source}: unknown parameter {key!r}, expected some of {', '.join(defaults)}")
        kind = type(defaults[key])
        try:
            given[key] = kind(text)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise ConfigError(f"{source}: {key} must be {expected}, got {text!r}") from None
    return SETS[name](**given, options=options)


def _make(
    name: str, graphs: int, seed: int,
    make: Callable[[int, np.random.Generator], Drawn],
    options: ReadOptions | None,
) -> GraphSet:  # fmt: skip
    """Draw every graph with its own random generator, so that graph g does not depend on the number of graphs."""
    if seed < 0:
        raise ConfigError(f"seed must be at least 0, got {seed}")
    records, total = [], 0
    for g in range(graphs):
        rng = np.random.default_rng([seed, g])
        n, pairs, label, truth = make(g, rng)
        total += n
        if total > MOST:
            raise ConfigError(f"more than {MOST:,} nodes. Ask for fewer or smaller graphs")
        order = rng.permutation(n)  # node numbers must not reveal the motif
        permuted = None if truth is None else truth[np.argsort(order)]
        source, target = order[pairs.reshape(-1, 2)].T
        records.append(Record(at=f"graph {g}", nodes=n, source=source, target=target, label=label, truth=permuted))
    options = options or ReadOptions(labels="optional")
    return GraphSet(**assemble(records, name=f"synthetic:{name}", options=options, features="degree"))


def _check_sizes(size: str = "nodes", /, *, least: int = 1, **numbers: int) -> None:
    """Refuse numbers that are too small, and too many nodes in total; `size` names the one that sets a graph's size."""
    for name, value in numbers.items():
        minimum = least if name == size else 1
        if value < minimum:
            raise ConfigError(f"{name} must be at least {minimum}, got {value}")
    if numbers["graphs"] * numbers[size] > MOST:
        raise ConfigError(f"more than {MOST:,} nodes. Ask for fewer or smaller graphs")


def _path(n: int) -> Pairs:
    v = np.arange(n)
    return np.stack([v[:-1], v[1:]], axis=1)


def _ring(n: int) -> Pairs:
    return np.concatenate([_path(n), [[n - 1, 0]]])


def _random_tree(n: int, rng: np.random.Generator) -> Pairs:
    """Each node is attached to a random earlier one."""
    v = np.arange(1, n)
    return np.stack([(rng.random(n - 1) * v).astype(np.int64), v], axis=1)
