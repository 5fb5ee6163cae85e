"""The paper's claims and the results of checking them by computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from asapool.theory.bounds import Family, Method, forced, k_star, k_star_limit, k_star_printed
from asapool.theory.exhaustive import TreeRow, path_exceptions
from asapool.theory.extremum import Training
from asapool.theory.receptive import ReceptiveField
from asapool.theory.selections import SelectionRow

Verdict = Literal["holds", "holds as corrected", "fails"]


@dataclass(frozen=True)
class CheckedClaim:
    """One statement of the paper, its verdict, and the computation behind it."""

    name: str
    says: str
    verdict: Verdict
    found: str


def lemma_claims(rows: Sequence[TreeRow], longest: int = 60) -> list[CheckedClaim]:
    """Lemmas 1 to 5 against every tree of the census, and every path of up to `longest` nodes."""
    trees = sum(row.trees for row in rows if row.h == 1)
    top = max(row.N for row in rows)
    where = f"all {trees} trees of up to {top} nodes, h = 1 … N + 2"
    steps = all(row.step in (0, 1) for row in rows)
    best = all(row.best == row.formula == row.starlike for row in rows)
    even = [row for row in rows if row.h % 2 == 0]
    odd = [row for row in rows if row.h % 2 and row.printed != row.best]
    every = next((row for row in rows if row.lemma2_every and row.h % 2 == 0), None)
    each = next((row for row in rows if row.lemma2_each and row.h % 2 == 0), None)
    some = all(row.lemma2_some for row in rows)
    paths = path_exceptions(longest)
    return [
        CheckedClaim(
            "Lemma 1", "the best n*_h grows by 0 or 1 with each node", "holds" if steps else "fails",
            f"differences are 0 or 1 on {where}",
        ),
        CheckedClaim(
            "Lemma 2", "every optimum tree contains the optimum tree of one node less",
            "holds" if every is None else "fails",
            "no counterexample with this few nodes" if every is None else
            f"false for every pair (first at N = {every.N}, h = {every.h}) and for each tree "
            f"(first {f'at N = {each.N}, h = {each.h}' if each else 'beyond the census'}); "
            f"{'true' if some else 'not even true'} of some pair at every N, the balanced starlike trees",
        ),
        CheckedClaim(
            "Lemma 3", "n*_h of a balanced starlike tree, h even, is ⌊(N−1)/(h/2)⌋",
            "holds as corrected" if all(row.starlike == max(1, row.printed) for row in even) else "fails",
            "equal on every even h of the census; n* is 1, not 0, if N ≤ h/2",
        ),
        CheckedClaim(
            "Lemma 4", "no tree of N nodes has more than ⌊(N−1)/(h/2)⌋, h even",
            "holds as corrected" if best else "fails",
            f"max n* = max(1, ⌊(N−[h even])/⌈h/2⌉⌋) on {where}; the printed form fails for odd h "
            f"({len(odd)} cases, e.g. N = 7, h = 3: printed 4, true 3) and its proof rests on Lemma 2",
        ),
        CheckedClaim(
            "Lemma 5", "n*_h of the path is ⌈N/h⌉", "holds" if not paths else "fails",
            f"equal on all paths of up to {longest} nodes, h = 1 … N",
        ),
    ]  # fmt: skip


def theorem_claims(brute: Sequence[SelectionRow], sizes: range = range(2, 1001)) -> list[CheckedClaim]:
    """Theorems 2 and 3 and Lemma 6: limits, finite N, and every selection pooled by the operators."""
    agree = all(row.edgeless == row.formula and row.mismatches == 0 for row in brute)
    count = sum(row.selections for row in brute)
    top = {family: max(row.N for row in brute if row.family == family) for family in ("tree", "path")}
    methods: tuple[Method, ...] = ("topk", "asap")

    def counterexamples(family: Family) -> list[int]:
        """Sizes at which a ratio that the printed bound admits leaves some graph without an edge."""
        return [
            N for N in sizes
            if any(not forced(_smallest(k_star_printed(N, family, m), N, family), N, family, m) for m in methods)
        ]  # fmt: skip

    tree, path = counterexamples("tree"), counterexamples("path")
    half = [N for N in sizes if not forced(k_star_limit("tree", "asap"), N, "tree", "asap")]
    limits = [str(k_star_limit(f, m)) for f in ("tree", "path") for m in methods]
    at = max(sizes)
    near = [float(k_star(at, f, m)) for f in ("tree", "path") for m in methods]
    return [
        CheckedClaim(
            "Theorem 2", "on trees k* → 1 for TopK and SAGPool, → ½ for ASAP",
            "holds as corrected" if agree and limits[:2] == ["1", "1/2"] and tree and half == [2] else "fails",
            f"limits {limits[0]} and {limits[1]} (at N = {at}: {near[0]:.4f}, {near[1]:.4f}); exact: k > n*/N. "
            f"The printed k > 1 − 2/N and k > ½ − 3/(2N) are off by one node: they admit an edgeless graph at "
            f"{len(tree)} of {len(sizes)} sizes. k = ½ itself forces an ASAP edge at every N but "
            f"{', '.join(map(str, half))} (where it keeps one node)",
        ),
        CheckedClaim(
            "Lemma 6", "on paths k ≥ 1/(RF+1) + 1/N forces an edge", "holds" if not path else "fails",
            "sufficient at every N, and tight as a count of nodes; the smallest ratio is any k > ⌈N/(RF+1)⌉/N",
        ),
        CheckedClaim(
            "Theorem 3", "on paths k* → ½ for TopK and SAGPool, → ¼ for ASAP",
            "holds" if limits[2:] == ["1/2", "1/4"] else "fails",
            f"limits {limits[2]} and {limits[3]} (at N = {at}: {near[2]:.4f}, {near[3]:.4f}); "
            "its proof prints 0.25 for TopK",
        ),
        CheckedClaim(
            "Operators", "the pooled graph of every selection obeys these thresholds", "holds" if agree else "fails",
            f"{count:,} selections pooled: all trees of up to {top['tree']} nodes and paths of up to {top['path']}, "
            "TopK and ASAP, h = 1, 2; on every single graph the largest edgeless selection is n*_{RF+1} of that graph",
        ),
        CheckedClaim(
            "Connectedness", "(not claimed) how many nodes force a connected pooled graph",
            "holds" if all(row.disconnected == row.disconnected_formula for row in brute) else "fails",
            "up to N − RF nodes can be kept with a disconnected pooled graph: N − 1 for TopK, N − 3 for ASAP; "
            "this ratio tends to 1 for both",
        ),
    ]  # fmt: skip


def field_claims(fields: dict[str, ReceptiveField]) -> list[CheckedClaim]:
    """Measured receptive fields against h and 2h + 1."""
    spans = {h: fields[f"asap h={h}"] for h in (1, 2)}
    fixed = {h: fields[f"asap h={h}, S fixed"] for h in (1, 2)}
    joins = all(spans[h].span == 2 * h + 1 for h in spans) and fields["topk"].span == fields["sagpool"].span == 1
    return [
        CheckedClaim(
            "RF^edge", "2h + 1 for ASAP, h for TopK and SAGPool",
            "holds as corrected" if joins else "fails",
            f"ASAP connects kept nodes up to {spans[1].span} (h = 1) and {spans[2].span} (h = 2) hops apart, "
            f"TopK and SAGPool {fields['topk'].span}. Taken literally (edges that change a pooled edge) "
            f"it is h + 2 for ASAP: {spans[1].edge} and {spans[2].edge} hops from the nearer centre",
        ),
        CheckedClaim(
            "RF^edge of DiffPool", "2h + 1 as well", "fails" if fields["diffpool"].whole else "holds",
            "its S is dense: every edge of the graph changes every pooled edge",
        ),
        CheckedClaim(
            "RF^node", "h for ASAP",
            "holds as corrected" if all(fixed[h].node == h and spans[h].node == h + 2 for h in spans) else "fails",
            f"h is the field of S alone; the inner GCN and LEConv add one hop each: {spans[1].node} (h = 1), "
            f"{spans[2].node} (h = 2). TopK {fields['topk'].node}, SAGPool {fields['sagpool'].node}",
        ),
    ]  # fmt: skip


def scoring_claims(error: float, counterexamples: tuple[bool, bool], runs: Sequence[Training]) -> list[CheckedClaim]:
    """Theorem 1, by weights and by training."""
    by = {(run.layer, run.task): run for run in runs}
    good, stuck = by["leconv", "above"], by["gcn", "above"]
    gcn_fails = stuck.accuracy < 0.53 and abs(stuck.auc - 0.5) < 0.03
    return [
        CheckedClaim(
            "Theorem 1a", "GCN cannot learn f", "holds as corrected" if gcn_fails and counterexamples[0] else "fails",
            "true if some node weights itself and a neighbour with opposite signs; false in general: "
            f"the mean is an f too. Trained to find nodes above their neighbours: {stuck.accuracy:.1%} "
            f"(bound {stuck.bound:.0%}), AUC {stuck.auc:.3f}; "
            f"local maxima: AUC {by['gcn', 'maximum'].auc:.3f} (bound 0.5)",
        ),
        CheckedClaim(
            "Theorem 1b", "LEConv can learn f",
            "holds as corrected" if error < 1e-6 and good.accuracy > 0.98 and counterexamples[1] else "fails",
            f"exactly the f with β_ij = c·A_ij, α_i = a + b·Σ_j A_ij, to {error:.0e} with given weights; other β "
            f"cannot be represented. Trained: {good.accuracy:.1%}, AUC {good.auc:.3f}; "
            f"local maxima: AUC {by['leconv', 'maximum'].auc:.3f}",
        ),
    ]  # fmt: skip


def symmetry_claims(
    worst: float, ties_differ: bool, powers: Sequence[tuple[int, int, int, int, int]]
) -> list[CheckedClaim]:
    """Proposition 1, and graph powers: rows (k, h, TopK's reach, ASAP's, ASAP's on the power graph)."""
    good = all(t == k and a == k + 2 * h and b == k * (2 * h + 1) for k, h, t, a, b in powers)
    return [
        CheckedClaim(
            "Proposition 1", "ASAP is permutation equivariant",
            "holds as corrected" if worst < 1e-9 and ties_differ else "fails",
            f"relabelling changes X^p and A^p by at most {worst:.0e}; with ties for the last kept cluster it is false, "
            "as for every operator that keeps the best K",
        ),
        CheckedClaim(
            "Graph powers", "with Â^k TopK reaches k hops, ASAP k + 2h", "holds as corrected" if good else "fails",
            "true for k, h ≤ 3 if clusters remain those of G; pooling the k-th power itself reaches k(2h + 1). "
            "Â must contain self-loops: A² alone no longer connects neighbours on a tree",
        ),
    ]  # fmt: skip


def _smallest(bound: Fraction, N: int, family: Family) -> Fraction:
    """About the smallest ratio in (0, 1] that the printed bound admits: it is strict on trees, not on paths."""
    return max(bound, Fraction(0)) + Fraction(1, 10**9 * N) if family == "tree" else bound
