"""A level of a hierarchy as a NetworkX graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asapool.errors import ConfigError

if TYPE_CHECKING:
    import networkx as nx

    from asapool.insight.hierarchy import Hierarchy


def to_networkx(hierarchy: Hierarchy, level: int) -> nx.Graph[int]:
    """Level 0: nodes with name, truth and importance. Others: clusters with medoid, fitness, members (original nodes).

    A graph whose edges run one way only becomes a DiGraph; edges carry their weight.
    """
    import networkx as nx

    if not 0 <= level <= len(hierarchy.levels):
        raise ConfigError(f"level must be 0 to {len(hierarchy.levels)} for graph {hierarchy.id!r}, got {level}")
    if level == 0:
        source, target, weight = hierarchy.source, hierarchy.target_node, hierarchy.weight
        nodes = [_node(hierarchy, v) for v in range(hierarchy.nodes)]
    else:
        here = hierarchy.levels[level - 1]
        source, target, weight = here.source, here.target, here.weight
        nodes = _clusters(hierarchy, level)
    listed = list(zip(source.tolist(), target.tolist(), weight.tolist(), strict=True))
    pairs = {(a, b): w for a, b, w in listed}
    both = all(pairs.get((b, a)) is not None for a, b in pairs)
    made: nx.Graph[int] = nx.Graph() if both else nx.DiGraph()
    made.graph.update(id=hierarchy.id, level=level, predicted=hierarchy.answer)
    for v, values in enumerate(nodes):
        made.add_node(v, **values)
    made.add_weighted_edges_from(listed)
    return made


def _node(hierarchy: Hierarchy, v: int) -> dict[str, Any]:
    values: dict[str, Any] = {kind: float(scores[v]) for kind, scores in hierarchy.importance.items()}
    if hierarchy.names:
        values["name"] = hierarchy.names[v]
    if hierarchy.truth is not None:
        values["truth"] = int(hierarchy.truth[v])
    return values


def _clusters(hierarchy: Hierarchy, level: int) -> list[dict[str, Any]]:
    here, composed = hierarchy.levels[level - 1], hierarchy.assignment(level).tocsc()
    found = []
    for k in range(len(here)):
        span = slice(composed.indptr[k], composed.indptr[k + 1])
        members = dict(zip(composed.indices[span].tolist(), composed.data[span].tolist(), strict=True))
        found.append({"medoid": int(here.medoid[k]), "fitness": float(here.kept_fitness[k]), "members": members})
    return found
