"""Runs all checks: tables, claims with their verdicts, misprints."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from asapool.theory import claims
from asapool.theory.bounds import Method
from asapool.theory.claims import CheckedClaim
from asapool.theory.equivariance import relabelling_error, tied_spectra
from asapool.theory.exhaustive import TreeRow, census
from asapool.theory.extremum import Training, difference_matrix, gcn_must_fail, leconv, leconv_weights, train
from asapool.theory.graphs import Neighbours, distances, path_graph
from asapool.theory.misprints import MISPRINTS, gcn_can_learn_means, leconv_cannot_learn_all
from asapool.theory.operators import dense, packed
from asapool.theory.receptive import ReceptiveField, receptive_field
from asapool.theory.selections import SelectionRow, joined, try_all_selections

Progress = Callable[[str, int, int], None]
MOST_SELECTIONS = 9  # nodes of the largest trees on which every selection is pooled
MOST_ON_PATHS = 11  # nodes of the longest paths on which every selection is pooled
KNOWN_TO_FAIL = ("Lemma 2", "RF^edge of DiffPool")  # docs/theory.md has the counterexamples
METHODS: tuple[tuple[Method, int], ...] = (("topk", 1), ("topk", 2), ("asap", 1), ("asap", 2))


@dataclass(frozen=True)
class CheckedMisprint:
    """A misprint of the text and whether its check confirmed it."""

    where: str
    printed: str
    right: str
    check: str
    confirmed: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything `asapool theory` shows."""

    max_nodes: int
    claims: tuple[CheckedClaim, ...]
    misprints: tuple[CheckedMisprint, ...]
    trees: tuple[TreeRow, ...]
    selections: tuple[SelectionRow, ...]
    fields: dict[str, ReceptiveField]
    powers: tuple[tuple[int, int, int, int, int], ...]
    trainings: tuple[Training, ...]

    @property
    def sound(self) -> bool:
        """Whether every check gave the documented result: only the known claims fail, every misprint is confirmed."""
        failed = tuple(claim.name for claim in self.claims if claim.verdict == "fails")
        return failed == KNOWN_TO_FAIL and all(misprint.confirmed for misprint in self.misprints)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "sound": self.sound}


def verify(max_nodes: int = 14, seed: int = 0, progress: Progress | None = None) -> Report:
    """Check the paper's theory: all trees of up to max_nodes nodes, every selection on those of up to nine, and more.

    >>> verify(max_nodes=8).sound
    True
    """
    report: Progress = progress or (lambda text, done, total: None)
    with one_thread():
        return _verify(max_nodes, seed, report)


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict torch to one thread inside: these graphs are tiny, and more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _verify(max_nodes: int, seed: int, report: Progress) -> Report:
    rows = census(max_nodes, lambda done, total: report("all trees", done, total))
    brute: list[SelectionRow] = []
    for i, (method, h) in enumerate(METHODS):
        report("all selections", i, len(METHODS))
        brute += try_all_selections(min(max_nodes, MOST_SELECTIONS), method, h)
        brute += try_all_selections(min(max_nodes, MOST_ON_PATHS), method, h, "path")
    report("receptive fields", 0, 1)
    fields = probe_all()
    powers = power_reaches()
    runs = []
    for i, layer in enumerate(("leconv", "gcn")):
        report("training", i, 2)
        runs += [train(layer, task, seed) for task in ("above", "maximum")]  # type: ignore[arg-type]
    report("relabelling and misprints", 0, 1)
    before, after = tied_spectra()
    ties_differ = max(abs(a - b) for a, b in zip(before, after, strict=True)) > 0.1
    checked = [
        *claims.lemma_claims(rows),
        *claims.theorem_claims(brute),
        *claims.field_claims(fields),
        *claims.scoring_claims(construction_error(seed), (gcn_can_learn_means(), leconv_cannot_learn_all()), runs),
        *claims.symmetry_claims(worst_relabelling(seed), ties_differ, powers),
    ]
    misprints = tuple(CheckedMisprint(m.where, m.printed, m.right, m.check.__name__, m.check()) for m in MISPRINTS)
    report("done", 1, 1)
    return Report(
        max_nodes=max_nodes, claims=tuple(checked), misprints=misprints, trees=tuple(rows), selections=tuple(brute),
        fields=fields, powers=tuple(powers), trainings=tuple(runs),
    )  # fmt: skip


def probe_all() -> dict[str, ReceptiveField]:
    """The receptive field of every method, by name."""
    fields = {method: receptive_field(method) for method in ("topk", "sagpool", "diffpool")}
    for h in (1, 2):
        fields[f"asap h={h}, S fixed"] = receptive_field("asap", h, frozen=True)
        fields[f"asap h={h}"] = receptive_field("asap", h)
    return fields


def power_reaches(most: int = 3) -> list[tuple[int, int, int, int, int]]:
    """Rows (k, h, TopK's reach, ASAP's with clusters of G, ASAP's with clusters of G^k), measured on a long path.

    >>> power_reaches(most=1)
    [(1, 1, 1, 3, 3)]
    """
    rows = []
    for k in range(1, most + 1):
        for h in range(1, most + 1):
            path = path_graph(2 * k * (2 * h + 1) + 1)
            D = torch.from_numpy(distances(path))
            pairs = [joined(path, "topk", 1, k), joined(path, "asap", h, k), joined(path, "asap", h, k, "graph")]
            topk, asap, power = (int((D * pair).max()) for pair in pairs)
            rows.append((k, h, topk, asap, power))
    return rows


def construction_error(seed: int = 0, trials: int = 50) -> float:
    """The largest |LEConv − f| over random weighted graphs and representable f, with weights from leconv_weights."""
    generator = torch.Generator().manual_seed(seed)
    worst = 0.0
    for _ in range(trials):
        graph = random_graph(8, 0.5, generator)
        x = torch.randn(8, 3, generator=generator, dtype=torch.float64)
        W = torch.randn(3, 1, generator=generator, dtype=torch.float64)
        a, b, c = torch.rand(3, generator=generator, dtype=torch.float64) + 0.1
        edges = sum(map(len, graph)) // 2
        g = packed(graph, torch.rand(edges, generator=generator, dtype=torch.float64) + 0.1)
        A = dense(g.pattern, g.weight)
        alpha, beta = a + b * A.sum(dim=1), c * A
        f = difference_matrix(alpha, beta) @ x @ W
        worst = max(worst, float((leconv(g, x, *leconv_weights(alpha, beta, A, W)) - f).abs().max()))
        if edges and not gcn_must_fail(alpha, beta):  # signs differ on every edge, so no GCN can equal this f
            return float("inf")
    return worst


def worst_relabelling(seed: int = 0, trials: int = 30) -> float:
    """The largest change of ASAP's output under random relabellings of random graphs."""
    generator = torch.Generator().manual_seed(seed)
    errors = []
    for trial in range(trials):
        N = 2 + trial % 9
        graph = random_graph(N, 0.4, generator)
        attention = ("paper", "authors")[trial % 2]
        errors.append(relabelling_error(graph, -(-N // 2), seed + trial, 1 + trial % 2, attention))  # type: ignore[arg-type]
    return max(errors)


def random_graph(N: int, p: float, generator: torch.Generator) -> Neighbours:
    """N nodes, each pair connected with probability p.

    >>> random_graph(2, 1.0, torch.Generator())
    [[1], [0]]
    """
    rng = random.Random(int(torch.randint(2**31, (1,), generator=generator)))
    graph: Neighbours = [[] for _ in range(N)]
    for i in range(N):
        for j in range(i):
            if rng.random() < p:
                graph[i].append(j)
                graph[j].append(i)
    return graph
