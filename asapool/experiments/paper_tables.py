"""The paper's tables that need no training: properties (`table1`), tested on the layers, and data sets (`table3`).

The layers are those of the models. The tests:
    Sparse                        How does the number of stored values grow with the number of nodes N? (N or N²)
    Node Aggregation              Does a node that is not kept change more than the scale of a pooled node?
    Soft Edge Weights             Do pooled edge weights depend on the features?
    Variable number of clusters   Does a larger graph get more clusters?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from asapool.experiments.paper import PROPERTIES, STAND_INS, STATISTICS, TICKS, Statistics, canonical
from asapool.experiments.table_text import csv_text, markdown
from asapool.models.config import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor, nn

    from asapool.data import GraphSet
    from asapool.kernels import Graph


WORDS = {"graphs": "graphs", "classes": "classes", "nodes": "nodes (mean)", "edges": "edges (mean)"}


@dataclass(frozen=True, kw_only=True)
class DataRow:
    """One data set: our counts and the paper's; `other` names the paper's data set if it is a different one."""

    name: str
    ours: Statistics
    paper: Statistics | None
    other: str = ""

    @property
    def difference(self) -> Statistics | None:
        """Ours − the paper's, to two digits; None if the paper does not have the data set."""
        a, b = self.ours, self.paper
        if b is None or self.other:
            return None
        nodes, edges = round(a.nodes - b.nodes, 2), round(a.edges - b.edges, 2)
        return Statistics(a.graphs - b.graphs, a.classes - b.classes, nodes, edges)

    @property
    def verdict(self) -> str | None:
        """Whether all four numbers equal the paper's."""
        gap = self.difference
        return None if gap is None else "the same" if not any(gap) else "different"


@dataclass(frozen=True, kw_only=True)
class StatisticsTable:
    """All data sets."""

    name: str = "table3"
    title: str = "Statistics of the data sets"
    rows: tuple[DataRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [
            {"name": r.name, "ours": r.ours._asdict(), "paper": r.paper._asdict() if r.paper else None,
             "other": r.other, "difference": r.difference._asdict() if r.difference else None, "verdict": r.verdict}
            for r in self.rows
        ]  # fmt: skip
        return {"kind": "statistics", **asdict(self), "rows": rows}

    def to_markdown(self) -> str:
        """Our counts, and the paper's if they differ."""
        head = ["data set", *WORDS.values(), "the paper"]
        return markdown(head, [[r.name, *map(_number, r.ours), _paper_text(r)] for r in self.rows])

    def to_csv(self) -> str:
        """A line per data set."""
        head = ["name", *WORDS, *(f"paper_{name}" for name in WORDS), "paper_data", "verdict"]
        rows = [
            [r.name, *map(_number, r.ours), *(map(_number, r.paper) if r.paper else [""] * 4), r.other, r.verdict or ""]
            for r in self.rows
        ]
        return csv_text(head, rows)


def table3(graphs: Mapping[str, GraphSet]) -> StatisticsTable:
    """Compute the statistics of each data set; graphs by the name of their column."""
    rows = []
    for name, data in graphs.items():
        counted = data.summary()
        means = round(counted.nodes_mean, 2), round(counted.edges_mean, 2)
        ours = Statistics(counted.graphs, counted.classes, *means)
        known_name = canonical(name)
        other = STAND_INS.get(known_name, "")
        rows.append(DataRow(name=name, ours=ours, paper=STATISTICS.get(other or known_name), other=other))
    return StatisticsTable(rows=tuple(rows))


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _paper_text(row: DataRow) -> str:
    if row.paper is None:
        return "–"
    numbers = ", ".join(map(_number, row.paper))
    if row.other:
        return f"{row.other} {numbers} (other data)"
    return "the same" if row.verdict == "the same" else f"{numbers} (different)"


F = 4  # channels, so that a change of direction can be told from a change of scale
SIZES = (128, 256, 512)
SAME = 1e-9  # tolerance for rounding in double precision
Make = Callable[[int], Any]  # nodes of a typical graph → a pooling layer with step(x, graph)


@dataclass(frozen=True, kw_only=True)
class PropertyCell:
    """One cell: whether the layer has the property, what was measured, and the paper's entry, if any."""

    holds: bool
    evidence: str
    paper: bool | None


@dataclass(frozen=True, kw_only=True)
class PropertyTable:
    """Methods by properties."""

    name: str = "table1"
    title: str = "Properties of hierarchical pooling methods"
    findings: dict[str, dict[str, PropertyCell]]  # method → property → finding

    @property
    def agrees(self) -> bool:
        """Whether all entries of the paper agree with ours."""
        return all(f.paper in (None, f.holds) for row in self.findings.values() for f in row.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"kind": "properties", "agrees": self.agrees}

    def to_markdown(self) -> str:
        """✓ or –, followed by the paper's if it differs; below, what was measured."""
        head = ["property", *self.findings]
        rows = [[name, *(_tick(row[name]) for row in self.findings.values())] for name in PROPERTIES]
        why = [[name, *(row[name].evidence for row in self.findings.values())] for name in PROPERTIES]
        text = "The paper's table agrees" if self.agrees else "The paper's table differs where marked"
        return f"{markdown(head, rows)}\n{text}. Measured:\n\n{markdown(head, why)}"

    def to_csv(self) -> str:
        """A line per cell."""
        lines = [
            [method, name, f.holds, "" if f.paper is None else f.paper, f.evidence]
            for method, row in self.findings.items()
            for name, f in row.items()
        ]
        return csv_text(["method", "property", "holds", "paper", "evidence"], lines)


def table1(models: Mapping[str, ModelConfig] | None = None, seed: int = 0) -> PropertyTable:
    """The four properties of the paper's four hierarchical methods, or of other models by name."""
    if models is None:
        models = {method: ModelConfig.from_dict({"method": method, "hidden": F}) for method in TICKS}
    findings = {}
    for name, config in models.items():
        ticks = TICKS.get(name)
        measured = measure(layer_of(config), seed)
        findings[name] = {
            p: PropertyCell(holds=holds, evidence=evidence, paper=None if ticks is None else p in ticks)
            for p, (holds, evidence) in measured.items()
        }
    return PropertyTable(findings=findings)


def layer_of(config: ModelConfig) -> Make:
    """A function that builds the pooling layer of the model's first level for graphs of a given typical size."""
    from asapool.models import LevelShape, method

    def make(nodes: int) -> nn.Module:
        return method(config.method).make_pool(config, LevelShape(in_channels=config.hidden, typical_nodes=nodes))

    return make


def measure(make: Make, seed: int = 0) -> dict[str, tuple[bool, str]]:
    """Whether a layer has each property, and the evidence; make(N) builds it for graphs of N nodes."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tests = (_sparse, _aggregates, _soft, _variable)
        return {name: test(make) for name, test in zip(PROPERTIES, tests, strict=True)}


def _sparse(make: Make) -> tuple[bool, str]:
    """Grow graph and layer together, and fit kept ∝ N^p."""
    kept = [_kept_numbers(make(N).double(), *_ring(N)) for N in SIZES]
    power = math.log(kept[-1] / kept[0]) / math.log(SIZES[-1] / SIZES[0])
    return power < 1.5, f"stores {_list(kept)} values for {_list(SIZES)} nodes: N^{power:.2f}"


def _kept_numbers(layer: nn.Module, x: Tensor, graph: Graph) -> int:
    """Numbers that stay in memory after the step: its outputs, and what the backward pass will read."""
    import torch

    seen: dict[int, Tensor] = {}  # keeps tensors alive, so that no address is reused

    def note(tensor: Tensor) -> Tensor:
        for part in (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,):
            seen.setdefault(part.untyped_storage().data_ptr(), part)
        return tensor

    x.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        step = layer.step(x, graph)  # type: ignore[operator]  # all pooling layers have it
    for out in (step.x, step.after.weight, getattr(step, "S", None) if not hasattr(step, "assignment") else None):
        if out is not None:
            note(out)
    return sum(tensor.untyped_storage().nbytes() // 8 for tensor in seen.values())


def _aggregates(make: Make) -> tuple[bool, str]:
    """∂x^p_k/∂x_j for nodes j that are not kept, without the part along x^p_k, which a gate can cause."""
    import torch

    N = 24
    x, graph = _ring(N)
    layer = make(N).double()
    x.requires_grad_()
    step = layer.step(x, graph)
    K = step.x.size(0)
    jacobian = torch.stack(
        [torch.autograd.grad(step.x[k, f], x, retain_graph=True)[0] for k in range(K) for f in range(F)]
    ).view(K, F, N, F)
    along = torch.nn.functional.normalize(step.x.detach(), dim=1)  # (K, F)
    gated = torch.einsum("kf,kg,kgnh->kfnh", along, along, jacobian)
    beyond = (jacobian - gated).abs().amax(dim=(0, 1, 3))  # (N,)
    perm = getattr(step, "perm", None)
    dropped = torch.ones(N, dtype=torch.bool)
    if perm is not None:
        dropped[perm] = False
    used, among = int((beyond[dropped] > SAME).sum()), int(dropped.sum())
    return used > 0, f"{used} of {among} nodes that are not kept change more than the scale of a pooled node"


def _soft(make: Make) -> tuple[bool, str]:
    """Change all features so little that the same nodes are kept, and count the edge weights that change."""
    import torch

    N, size = 64, 1e-4
    x, graph = _ring(N)
    layer = make(N).double()
    with torch.no_grad():
        first = layer.step(x, graph)
        shift = torch.randn_like(x)
        for _ in range(20):
            second = layer.step(x + size * shift, graph)
            if getattr(first, "perm", None) is None or torch.equal(first.perm, second.perm):
                break
            size /= 4
        row, col = first.after.pattern.row, first.after.pattern.col
        between = row != col  # the diagonal may be fixed by convention
        moved = (first.after.weight - second.after.weight).abs()[between] > SAME * size
    changed, among = int(moved.sum()), int(between.sum())
    return changed > 0, f"{changed} of {among} pooled edge weights depend on the features"


def _variable(make: Make) -> tuple[bool, str]:
    """One layer, graphs of several sizes."""
    import torch

    layer = make(SIZES[0]).double()
    with torch.no_grad():
        counts = [layer.step(*_ring(N)).x.size(0) for N in SIZES]
    return len(set(counts)) > 1, f"{_list(counts)} clusters for {_list(SIZES)} nodes"


def _ring(N: int) -> tuple[Tensor, Graph]:
    """Random features and a graph of degree 3: a ring of N nodes (even) plus a random perfect matching."""
    import torch

    from asapool.nn.inputs import pack_graph

    node, ends = torch.arange(N), torch.randperm(N).view(2, -1)
    pairs = torch.cat([torch.stack([node, (node + 1) % N]), ends], dim=1)
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    x = torch.randn(N, F, dtype=torch.float64)
    return x, pack_graph(x, edge_index, None, torch.tensor([0, N]), "auto")


def _tick(finding: PropertyCell) -> str:
    mark = "✓" if finding.holds else "–"
    return mark if finding.paper in (None, finding.holds) else f"{mark} (paper: {'✓' if finding.paper else '–'})"


def _list(values: tuple[int, ...] | list[int]) -> str:
    return ", ".join(f"{value:,}" if value > 9999 else str(value) for value in values)
