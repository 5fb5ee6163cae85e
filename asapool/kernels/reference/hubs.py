"""The strongest pooled edges of a graph with hubs, chosen without forming all of A^p = Ŝᵀ Â Ŝ.

A hub is in the clusters of all its neighbours, so every row of A^p is dense. But these rows are sums of a few lists
that all rows share: row p is

    Σ_{j ∈ p, a hub} α_pj (ÂŜ)_j + Σ_{l, a hub} t_pl Ŝ_l + walks without a hub,  t_pl = Σ_{j ∈ p, no hub} α_pj Â_jl.

Each list is sorted once. The strongest entries of a row are then among the first entries of its lists and the ends of
its other walks, as soon as the weakest of them is at least the sum of the next entries of the lists (Fagin's threshold
algorithm). Rows for which this takes too long are formed completely, some at a time. The result is exact, memory is
linear in the size of the graph, and so is the time if a few entries of each list decide.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from asapool.kernels.reference.pairs import BUDGET, OneGraph, expand, find, portions
from asapool.kernels.reference.pattern import index_of

LONG = 32  # a node with more neighbours, or in more kept clusters, counts as a hub
EQUAL = 1 - 1e-12  # factor that allows for rounding when float64 sums are compared


class _Lists(NamedTuple):
    """Rows that many rows of A^p share: (ÂŜ)_j of hubs j, then Ŝ_l of hubs l.

    of_row, of_member (n,): the number of a node's list, −1 without one. dense, present (H, K): the values, and whether
    there is an entry. ptr (H+1,), cluster, value: the entries of each list, strongest first.
    """

    of_row: Tensor
    of_member: Tensor
    dense: Tensor
    present: Tensor
    ptr: Tensor
    cluster: Tensor
    value: Tensor


class _ByNode(NamedTuple):
    """Ŝ by node: ptr (n+1,), kept clusters and memberships."""

    ptr: Tensor
    cluster: Tensor
    value: Tensor


def strongest_pairs(graph: OneGraph, alpha: Tensor, hat: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The entries (p, q) of A^p to keep: the diagonal and the `most` strongest others of every row, sorted.

    If Â is symmetric, an entry is kept only if its mirror image is; see reference.strongest.

    Args:
        graph: Ŝ and Â of one graph.
        alpha: memberships of the batch.
        hat: weights of Â of the batch.
        most: entries per row.
    """
    K, s, a = graph.s_ptr.numel() - 1, alpha.detach()[graph.s_at].double(), hat.detach()[graph.a_at].double()
    order = torch.argsort(graph.s_node, stable=True)
    by_node = _ByNode(index_of(torch.bincount(graph.s_node, minlength=graph.nodes)), graph.s_row[order], s[order])
    lists = _shared_lists(graph, a, by_node, K)
    holders = by_node.ptr.diff()
    light = torch.where(lists.of_member[graph.a_col] < 0, holders[graph.a_col], 1)
    ways = torch.zeros_like(holders).index_add(0, graph.a_row, light)
    ways = torch.where(lists.of_row < 0, ways, 1)  # walks from a node without a hub
    cost = torch.zeros_like(graph.s_ptr[1:]).index_add(0, graph.s_row, ways[graph.s_node])
    keys = [
        _strongest_rows(graph, s, a, by_node, lists, part.start, part.stop, most)
        for part in portions(cost + 4 * most, BUDGET)
    ]
    diagonal = torch.arange(K, device=s.device)
    key = torch.cat([*keys, diagonal * K + diagonal]).sort().values
    p, q = key // K, key % K
    if _is_symmetric(graph, a):
        stays = find(key, q * K + p)[1]
        p, q = p[stays], q[stays]
    return p, q


def _is_symmetric(graph: OneGraph, a: Tensor) -> bool:
    key = graph.a_row * graph.nodes + graph.a_col
    mirrored, order = (graph.a_col * graph.nodes + graph.a_row).sort()
    return torch.equal(key, mirrored) and torch.allclose(a, a[order], rtol=1e-3, atol=1e-6)


def _shared_lists(graph: OneGraph, a: Tensor, by_node: _ByNode, K: int) -> _Lists:
    limit = max(1, (8 * graph.a_col.numel() + 2**22) // (2 * K))  # limit on lists: memory stays linear in the graph

    def numbered(counts: Tensor, first: int) -> Tensor:
        least = LONG
        if int((counts > LONG).sum()) > limit:
            least = int(counts.sort(descending=True).values[limit])
        hub = counts > least
        return torch.where(hub, hub.long().cumsum(0) - 1 + first, -1)

    degree, holders = graph.a_ptr.diff(), by_node.ptr.diff()
    of_row = numbered(degree, 0)
    rows = int((of_row >= 0).sum())
    of_member = numbered(holders, rows)
    H = rows + int((of_member >= 0).sum())
    dense, present = a.new_zeros(H * K), torch.zeros(H * K, dtype=torch.bool, device=a.device)

    def add(number: Tensor, node: Tensor, factor: Tensor) -> None:
        for part in portions(holders[node]):
            x, t = expand(by_node.ptr[node[part]], holders[node[part]])
            at = number[part][x] * K + by_node.cluster[t]
            dense.index_add_(0, at, factor[part][x] * by_node.value[t])
            present[at] = True

    hubs = (of_row >= 0).nonzero().view(-1)
    x, e = expand(graph.a_ptr[hubs], degree[hubs])
    add(of_row[hubs][x], graph.a_col[e], a[e])
    hubs = (of_member >= 0).nonzero().view(-1)
    add(of_member[hubs], hubs, torch.ones_like(hubs, dtype=a.dtype))
    entry = present.nonzero().view(-1)
    entry = entry[torch.argsort(dense[entry], descending=True, stable=True)]
    entry = entry[torch.argsort(entry // K, stable=True)]
    ptr = index_of(present.view(H, K).sum(1))
    return _Lists(of_row, of_member, dense.view(H, K), present.view(H, K), ptr, entry % K, dense[entry])


def _sums(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted unique keys, and the sums of their values."""
    keys, slot = torch.unique(key, return_inverse=True)
    return keys, value.new_zeros(keys.numel()).index_add(0, slot, value)


def _strongest_rows(
    graph: OneGraph, s: Tensor, a: Tensor, by_node: _ByNode, lists: _Lists, start: int, stop: int, most: int
) -> Tensor:
    """The strongest entries p·K + q of the rows start … stop − 1, besides the diagonal."""
    K, H = graph.s_ptr.numel() - 1, len(lists.dense)
    k = slice(int(graph.s_ptr[start]), int(graph.s_ptr[stop]))
    p, j, v = graph.s_row[k] - start, graph.s_node[k], s[k]
    hub = lists.of_row[j] >= 0
    uses, factors = [p[hub] * H + lists.of_row[j[hub]]], [v[hub]]
    p, j, v = p[~hub], j[~hub], v[~hub]
    x, e = expand(graph.a_ptr[j], graph.a_ptr.diff()[j])
    p, l, v = p[x], graph.a_col[e], v[x] * a[e]  # noqa: E741 (l as in the formula)
    hub = lists.of_member[l] >= 0
    uses, factors = [*uses, p[hub] * H + lists.of_member[l[hub]]], [*factors, v[hub]]
    p, l, v = p[~hub], l[~hub], v[~hub]  # noqa: E741
    x, t = expand(by_node.ptr[l], by_node.ptr.diff()[l])
    other = _sums(p[x] * K + by_node.cluster[t], v[x] * by_node.value[t])
    use, factor = _sums(torch.cat(uses), torch.cat(factors))
    rows, kept = torch.arange(stop - start, device=s.device), []
    depth = 2 * most if bool((v >= 0).all()) else K  # the first entries of a list suffice only if nothing is negative
    while rows.numel():
        number = torch.bincount(use // max(H, 1), minlength=stop - start)[rows]
        whole = (number > 0) & (number * depth * 8 >= K)
        kept += [
            _whole_rows(rows[whole][part], start, lists, other, (use, factor), most)
            for part in portions(torch.full_like(rows[whole], K), 4 * BUDGET)
        ]
        rows = rows[~whole]
        done, keys = _first_of_lists(rows, start, lists, other, (use, factor), most, depth)
        kept.append(keys)
        rows, depth = rows[~done], 4 * depth
    key = torch.cat(kept) if kept else rows
    return key + start * K


def _whole_rows(
    rows: Tensor, start: int, lists: _Lists, other: tuple[Tensor, Tensor], uses: tuple[Tensor, Tensor], most: int
) -> Tensor:
    """The strongest entries of rows that are formed completely."""
    H, K = lists.dense.shape
    place = torch.full((int(rows.max()) + 1,), -1, device=rows.device)
    place[rows] = torch.arange(rows.numel(), device=rows.device)

    def chosen(keys: Tensor, width: int) -> Tensor:
        row = keys // width
        return (row < place.numel()) & (place[row.clamp(max=place.numel() - 1)] >= 0)

    (key, value), (use, factor) = other, uses
    here = chosen(use, H)
    C = lists.dense.new_zeros(rows.numel(), H)
    C[place[use[here] // H], use[here] % H] = factor[here]
    used = torch.zeros_like(C)
    used[place[use[here] // H], use[here] % H] = 1
    weight = C @ lists.dense
    exists = used.float() @ lists.present.float() > 0
    here = chosen(key, K)
    i, q = place[key[here] // K], key[here] % K
    weight[i, q] += value[here]
    exists[i, q] = True
    weight = torch.where(exists, weight, -torch.inf)
    weight[torch.arange(rows.numel(), device=rows.device), rows + start] = -torch.inf  # the diagonal
    best, q = weight.topk(min(most, K), dim=1)
    return (rows[:, None] * K + q)[best > -torch.inf]


def _first_of_lists(
    rows: Tensor, start: int, lists: _Lists, other: tuple[Tensor, Tensor], uses: tuple[Tensor, Tensor], most: int,
    depth: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Which rows the first `depth` entries of their lists decide, and the strongest entries of those rows."""
    H, K = lists.dense.shape
    (key, value), (use, factor) = other, uses
    count = int(rows.max()) + 1 if rows.numel() else 0
    active = torch.zeros(count, dtype=torch.bool, device=rows.device)
    active[rows] = True

    def chosen(keys: Tensor, width: int) -> Tensor:
        row = keys // max(width, 1)
        return (row < count) & active[row.clamp(max=max(count - 1, 0))] if count else row < 0

    here = chosen(use, H)
    row, number, factor = use[here] // max(H, 1), use[here] % max(H, 1), factor[here]
    length = lists.ptr.diff()[number]
    x, at = expand(lists.ptr[number], length.clamp(max=depth))
    key, value = key[chosen(key, K)], value[chosen(key, K)]
    candidate = torch.unique(torch.cat([key, row[x] * K + lists.cluster[at]]))
    candidate = candidate[candidate // K + start != candidate % K]
    where, met = find(key, candidate)
    weight = torch.where(met, value[where], 0.0) if key.numel() else value.new_zeros(candidate.numel())
    i, q = candidate // K, candidate % K
    first = index_of(torch.bincount(row, minlength=count))
    x, u = expand(first[i], first.diff()[i])
    weight = weight.index_add(0, x, factor[u] * lists.dense[number[u], q[x]])
    order = torch.argsort(weight, descending=True, stable=True)
    order = order[torch.argsort(i[order], stable=True)]  # row by row, the strongest first, then the lower number
    size = torch.bincount(i, minlength=count)
    rank = torch.arange(order.numel(), device=order.device) - index_of(size)[i[order]]
    more = length > depth
    following = lists.value[torch.where(more, lists.ptr[number] + depth, 0)] if lists.value.numel() else factor
    bound = weight.new_zeros(count).index_add(0, row, torch.where(more, factor * following, 0.0))
    open_lists = torch.zeros(count, dtype=torch.int64, device=rows.device).index_add(0, row, more.long())
    least = weight.new_full((count,), -torch.inf)
    last = rank == most - 1
    least[i[order][last]] = weight[order][last]
    done = (open_lists == 0) | ((size >= most) & (least >= bound * EQUAL))
    keys = candidate[order][(rank < most) & done[i[order]]]
    return done[rows], keys
