"""Misprints in the paper's text, each with a small computation that shows it.

Every function returns True if the misprint is confirmed: the printed version fails, and the correction does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch

from asapool import kernels
from asapool.theory.bounds import (
    forced,
    k_star,
    k_star_limit,
    k_star_printed,
    optimum_nodes,
    tree_optimum,
    tree_optimum_printed,
)
from asapool.theory.equivariance import printed_block, tied_spectra
from asapool.theory.extremum import difference_matrix, gcn_family, leconv_family, nearest
from asapool.theory.graphs import neighbours, path_graph, starlike_tree
from asapool.theory.operators import dense, packed
from asapool.theory.receptive import receptive_field
from asapool.theory.selections import joined, pool_selections, shapes


@dataclass(frozen=True)
class Misprint:
    """Its position in the paper, the printed and the right version, and the check that distinguishes them."""

    where: str
    printed: str
    right: str
    check: Callable[[], bool]


def one_hop_more() -> bool:
    """The leaves of a star: 5 of 6 nodes kept and no edge, so n*_2 = 5 is the threshold, and not n*_1 = 6."""
    star = starlike_tree([1] * 5)
    edges, _ = shapes(*pool_selections(star, [range(1, 6), range(6)], "topk"))
    return edges.tolist() == [0, 5] and optimum_nodes(star, 2) == 5 and optimum_nodes(star, 1) == 6


def odd_h() -> bool:
    """h = 3, N = 7: printed 4; the maximum over all trees is 3."""
    from asapool.theory.exhaustive import all_trees

    return max(optimum_nodes(tree, 3) for tree in all_trees(7)) == tree_optimum(7, 3) == 3 != tree_optimum_printed(7, 3)


def small_trees() -> bool:
    """h = 6, N = 3: printed 0; one node can always be chosen."""
    return tree_optimum_printed(3, 6) == 0 and optimum_nodes(path_graph(3), 6) == 1


def no_leaf_to_cut() -> bool:
    """Legs 3, 3, 1 (N = 8, h = 4) is optimal with 3; cutting any leaf leaves 2, while 7 nodes can have 3."""
    whole, cut = starlike_tree([3, 3, 1]), (starlike_tree([3, 3]), starlike_tree([3, 2, 1]))
    optimal = optimum_nodes(whole, 4) == tree_optimum(8, 4) == tree_optimum(7, 4) == 3
    return optimal and [optimum_nodes(tree, 4) for tree in cut] == [2, 2]


def removing_a_chosen_leaf() -> bool:
    """The path of 6, h = 4, has n* = 2 with an end chosen; without that end n* is still 2."""
    return optimum_nodes(path_graph(6), 4) == optimum_nodes(path_graph(5), 4) == 2


def tree_bound_off_by_one() -> bool:
    """N = 5, k = 0.7 > 1 − 2/5: TopK keeps the 4 leaves of a star and no edge; so does ASAP with k = 0.3 on a path."""
    topk, _ = shapes(*pool_selections(starlike_tree([1] * 4), [range(1, 5)], "topk"))
    asap, _ = shapes(*pool_selections(path_graph(5), [(0, 4)], "asap"))
    printed = [k_star_printed(5, "tree", method) for method in ("topk", "asap")]
    admitted = Fraction(7, 10) > printed[0] and Fraction(3, 10) > printed[1]
    return admitted and topk.tolist() == [0] and asap.tolist() == [0]


def path_bound_not_smallest() -> bool:
    """N = 8, ASAP: k = 0.3 forces an edge (3 nodes kept, n* = 2), but is below 1/4 + 1/8."""
    k = Fraction(3, 10)
    return forced(k, 8, "path", "asap") and k < k_star_printed(8, "path", "asap")


def topk_limit_on_paths() -> bool:
    """TopK on paths tends to ½, not to the 0.25 its proof ends with."""
    return k_star_limit("path", "topk") == Fraction(1, 2) and abs(k_star(10**6, "path", "topk") - Fraction(1, 2)) < 1e-5


def self_loops_are_no_edges() -> bool:
    """One kept cluster: A^p is 1×1 and positive, an "edge" at any ratio, unless self-loops do not count."""
    _, weight = pool_selections(path_graph(5), [(2,)], "asap")
    return bool((weight > 0).all())


def gcn_can_learn_means() -> bool:
    """On two connected nodes, α = 1, β = −½ is the mean: an f of the theorem's form that GCN equals."""
    A = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    return nearest(difference_matrix(torch.ones(2, dtype=torch.float64), -A / 2), gcn_family(A)).error < 1e-12


def leconv_cannot_learn_all() -> bool:
    """On the path of three with unit weights, LEConv cannot represent β_01 = 1 and β_12 = 2."""
    A = dense(packed(path_graph(3)).pattern, packed(path_graph(3)).weight).double()
    beta = A * torch.tensor([[0, 1, 0], [1, 0, 2], [0, 2, 0]], dtype=torch.float64)
    return nearest(difference_matrix(torch.ones(3, dtype=torch.float64), beta), leconv_family(A)).error > 0.1


def gcn_exponent() -> bool:
    """D̂^-½ Â D̂^½ is similar to Â: on a star of 9 leaves its largest eigenvalue is 4, that of D̂^-½ Â D̂^-½ is 1."""
    hat = dense(packed(starlike_tree([1] * 9)).pattern, packed(starlike_tree([1] * 9)).hat("add")).double()
    d = hat.sum(dim=1).sqrt()
    printed, right = hat * d[None, :] / d[:, None], hat / d[:, None] / d[None, :]
    return abs(_radius(printed) - 4) < 1e-9 and abs(_radius(right) - 1) < 1e-9


def s_is_transposed() -> bool:
    """Star of 3 leaves, uniform attention, all kept: with S = α instead of αᵀ, A^p_00 is 1.5625 instead of 0.625."""
    g = packed(starlike_tree([1, 1, 1]))
    a = dense(g.pattern, kernels.attend(g.pattern, None, torch.zeros(4), backend="reference"))
    hat = dense(g.pattern, g.hat("add"))
    _, weight = pool_selections(starlike_tree([1, 1, 1]), [range(4)], "asap")
    right, printed = (a @ hat @ a.t())[0, 0], (a.t() @ hat @ a)[0, 0]
    return float(weight[0]) == float(right) == 0.625 and float(printed) == 1.5625


def s_is_not_sparse() -> bool:
    """Two-hop clusters of a star: S has N² entries while the graph has N − 1 edges."""
    star = packed(starlike_tree([1] * 9)).pattern
    return kernels.reach(star, 2, backend="reference").col.numel() == 100


def diffpool_sees_everything() -> bool:
    """All edges of a path of 13 nodes change every pooled edge of DiffPool."""
    return receptive_field("diffpool").whole


def node_field_is_wider() -> bool:
    """With α and φ as functions of x, ASAP's node field is h + 2, not h."""
    field = receptive_field("asap")
    return field.node == 3 and receptive_field("asap", frozen=True).node == 1


def block_is_no_permutation() -> bool:
    """Swapping two nodes and keeping the first: P[i, i] is zero, and X^p would vanish."""
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    return float(printed_block(swap, torch.tensor([0])).abs().sum()) == 0


def ties_break_equivariance() -> bool:
    """A ring of six equal nodes, three kept: relabelling changes the spectrum of A^p."""
    before, after = tied_spectra()
    return max(abs(a - b) for a, b in zip(before, after, strict=True)) > 0.1


def powers_have_two_readings() -> bool:
    """k = 2, h = 1 on a long path: clusters of G reach 4 hops, of G² 6; a star, of diameter ≤ k, gains nothing."""
    path, star = path_graph(20), starlike_tree([1] * 4)
    reach = [int(joined(path, "asap", 1, 2, of)[0].nonzero().max()) for of in ("edges", "graph")]
    return reach == [4, 6] and bool((joined(star, "asap", 1, 2) == joined(star, "topk", 1, 2)).all())


def powers_need_self_loops() -> bool:
    """A² without self-loops on a path: neighbours are no longer connected, nodes two hops apart are."""
    A = dense(packed(path_graph(5)).pattern, packed(path_graph(5)).weight)
    return float((A @ A)[0, 1]) == 0 and float((A @ A)[0, 2]) > 0


def master_query_cancels() -> bool:
    """With σ inside wᵀ, wᵀσ(W m_i ‖ x_j) = w₁ᵀσ(W m_i) + w₂ᵀσ(x_j), and softmax over j cancels the first term."""
    pattern = packed(neighbours(path_graph(6))).pattern
    generator = torch.Generator().manual_seed(0)
    query, token = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    with_master = kernels.attend(pattern, query, token, backend="reference")
    return torch.allclose(with_master, kernels.attend(pattern, None, token, backend="reference"), atol=1e-12)


def _radius(M: torch.Tensor) -> float:
    return float(torch.linalg.eigvals(M).abs().max())


MISPRINTS = (
    Misprint(
        "Theorems 2, 3 and Lemma 6, proofs",
        "more clusters than n*_{RF} force an edge",
        "n*_{RF+1}: kept nodes RF hops apart are still connected; the formulas do use RF + 1",
        one_hop_more,
    ),
    Misprint(
        "Lemmas 3 and 4",
        "⌊(N−1)/(h/2)⌋, with trees of height ⌈h/2⌉ defined for odd h too",
        "odd h: ⌊N/⌈h/2⌉⌋; needed for TopK with an even power, where RF + 1 is odd",
        odd_h,
    ),
    Misprint(
        "Lemmas 3 and 4, base case",
        "⌊(N−1)/(h/2)⌋ for all N, induction from N = h + 1",
        "max(1, ·): for N ≤ h/2 the formula gives 0",
        small_trees,
    ),
    Misprint(
        "Lemma 2",
        "an optimum tree of N − 1 nodes is an induced subgraph of one of N nodes",
        "some pair at every N, not every pair and not each tree",
        no_leaf_to_cut,
    ),
    Misprint(
        "Lemma 1, proof",
        "removing a chosen leaf lowers n* by one",
        "by at most one: another node may take its place; 0 ≤ needs its own line (adding a leaf loses nothing)",
        removing_a_chosen_leaf,
    ),
    Misprint(
        "Theorem 2, proof, last step",
        "k* > 1 − 2/N and k* > ½ − 3/(2N)",
        "⌊y⌋ > y − 1 was used in the wrong direction; k > 1 − 1/N and k > ⌊(N−1)/2⌋/N",
        tree_bound_off_by_one,
    ),
    Misprint(
        "Lemma 6 and Theorem 3",
        "k* = 1/(RF+1) + 1/N",
        "sufficient, not the smallest: k* = ⌈N/(RF+1)⌉/N, not attained",
        path_bound_not_smallest,
    ),
    Misprint(
        "Theorem 3, proof", "k* → 0.25 for TopK; h = 3 for ASAP", "k* → ½; RF^edge = 3, h = 1", topk_limit_on_paths
    ),
    Misprint(
        "Theorems 2 and 3",
        "existence of an edge",
        "other than a self-loop: the diagonal of A^p is always positive",
        self_loops_are_no_edges,
    ),
    Misprint(
        "Theorem 1a",
        "GCN cannot learn any f of differences",
        "any f in which a node and a neighbour have weights of opposite signs",
        gcn_can_learn_means,
    ),
    Misprint(
        "Theorem 1b",
        "LEConv can learn f for α_i, β_ij ∈ ℝ (the proof sets α_1 = 1, β = A)",
        "β_ij = c·A_ij and α_i = a + b·Σ_j A_ij, no others",
        leconv_cannot_learn_all,
    ),
    Misprint("Eq. 1 (GCN)", "D̂^-½ Â D̂^½", "D̂^-½ Â D̂^-½", gcn_exponent),
    Misprint(
        "After Eq. 6, and Algorithm 2",
        "S_ij = α_ij",
        "S = αᵀ: α_ij is how much j belongs to cluster i",
        s_is_transposed,
    ),
    Misprint(
        "Cluster assignment", "S takes O(|E|) space", "for h = 1; two-hop clusters of a star fill N²", s_is_not_sparse
    ),
    Misprint(
        "Graph connectivity",
        "RF^edge = 2h + 1 for DiffPool",
        "the whole graph, since S is dense",
        diffpool_sees_everything,
    ),
    Misprint(
        "Cluster assignment",
        "RF^node = h for ASAP",
        "h + 2 through the inner GCN and LEConv; h for S alone",
        node_field_is_wider,
    ),
    Misprint(
        "Proposition 1, proof",
        "X^p → P[i, i] X^p",
        "P[π(i), i]; P[i, i] is in general not a permutation matrix",
        block_is_no_permutation,
    ),
    Misprint("Proposition 1", "equivariant", "if the K-th and (K+1)-th fitness differ", ties_break_equivariance),
    Misprint(
        "Graph powers",
        "ASAP reaches k + 2h and is always better connected",
        "k + 2h with clusters of G, k(2h + 1) with clusters of G^k; never worse, not always better",
        powers_have_two_readings,
    ),
    Misprint(
        "Graph powers",
        "Â^k reaches at most k hops",
        "yes with self-loops in Â; A^k on a tree connects one parity only",
        powers_need_self_loops,
    ),
    Misprint(
        "Eq. 6 (M2T)",
        "α_ij depends on the master query m_i",
        "with σ inside wᵀ the query cancels and M2T is S2T; with σ outside (the authors' code) it does not",
        master_query_cancels,
    ),
)
