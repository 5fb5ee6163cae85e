"""From scores to memberships and what the fitness reads of the clusters, in one pass along the rows; and back again.

The single steps are in attend.py and propagate.py. A pooling takes them all in a row, and then a row's memberships are
at hand when its three numbers for the fitness are summed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, fresh, scalar
from asapool.kernels.graph import Array, Rows


@Loop
def _form_rows(start, stop, rowptr, col, soft, mask, u, bias, alpha, gathered):  # type: ignore[no-untyped-def]
    """soft_ij = e_ij / Σ_j e_ij, α = soft ⊙ mask (unless mask is empty, then alpha is soft) and Σ_j α_ij u_j + bias."""
    for i in range(start, stop):
        total = u.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            total += soft[e]
        share = u.dtype.type(1) / total
        a, b, c = bias[0], bias[1], bias[2]
        for e in range(rowptr[i], rowptr[i + 1]):
            w, j = soft[e] * share, col[e]
            soft[e] = w
            if mask.size:
                w *= mask[e]
                alpha[e] = w
            a += w * u[j, 0]
            b += w * u[j, 1]
            c += w * u[j, 2]
        gathered[i, 0], gathered[i, 1], gathered[i, 2] = a, b, c


@Loop
def _form_rows_backward(start, stop, rowptr, col, score, soft, mask, u, dg, parts, ds, dq):  # type: ignore[no-untyped-def]
    """∂s_ij = soft_ij (d_ij − Σ_k soft_ik d_ik) σ'(s_ij) with d = mask ⊙ (the parts + ∂gathered_i · u_j).

    ∂query_i = Σ_j ∂s_ij. score holds query, token and σ's slope. parts: ∂α from the features of the kept clusters,
    where it stands if a cluster was kept, and ∂α from elsewhere. Whatever is empty is left out.
    """
    query, token, slope = score
    kept, place, other = parts
    zero, one = u.dtype.type(0), u.dtype.type(1)
    for i in range(start, stop):
        a, b, c = dg[i, 0], dg[i, 1], dg[i, 2]
        q = query[i] if query.size else zero
        mean, own = zero, place[i] >= 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            d = a * u[j, 0] + b * u[j, 1] + c * u[j, 2]
            if own:
                d += kept[e]
            if other.size:
                d += other[e]
            if mask.size:
                d *= mask[e]
            mean += soft[e] * d
            ds[e] = d
        total = zero
        for e in range(rowptr[i], rowptr[i + 1]):
            bend = one if q + token[col[e]] > 0 else slope
            d = soft[e] * (ds[e] - mean) * bend
            ds[e] = d
            total += d
        if dq.size:
            dq[i] = total


@Loop
def _form_columns_backward(start, stop, rowptr_t, col_t, edge_t, ds, alpha, dg, dt, du):  # type: ignore[no-untyped-def]
    """∂token_j = Σ_i ∂s_ij and ∂u_j = Σ_i α_ij ∂gathered_i."""
    for j in range(start, stop):
        t, a, b, c = du.dtype.type(0), du.dtype.type(0), du.dtype.type(0), du.dtype.type(0)
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            i, w = col_t[e], alpha[edge_t[e]]
            t += ds[edge_t[e]]
            a += w * dg[i, 0]
            b += w * dg[i, 1]
            c += w * dg[i, 2]
        dt[j] = t
        du[j, 0], du[j, 1], du[j, 2] = a, b, c


def form_memberships(
    rows: Rows, soft: Array, mask: Tensor | None, u: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax, memberships α (the same where nothing is masked), and S u + bias; u (N, 3).

    soft: exp of the scores, which becomes the softmax in place.
    """
    alpha = soft if mask is None else np.empty_like(soft)
    masked, u_ = soft[:0] if mask is None else array(mask), array(u)
    b, gathered = np.zeros(3, soft.dtype) if bias is None else array(bias), np.empty_like(u_)
    run_rows(_form_rows, u_.shape[0], 50 * soft.size, rows.rowptr, rows.col, soft, masked, u_, b, alpha, gathered)
    made = torch.from_numpy(soft)
    return made, made if mask is None else torch.from_numpy(alpha), torch.from_numpy(gathered)


def form_memberships_backward(
    rows: Rows, query: Tensor | None, token: Tensor, slope: float, soft: Tensor, mask: Tensor | None, alpha: Tensor,
    u: Tensor, dg: Tensor, kept: tuple[Array, Array], other: Tensor | None,
) -> tuple[Array, Tensor | None, Tensor, Tensor]:  # fmt: skip
    """∂s of the scores, ∂query, ∂token and ∂u from ∂(S u) and the parts of ∂α, see _form_rows_backward."""
    token_, soft_, u_, dg_, N, E = array(token), array(soft), array(u), array(dg), u.size(0), rows.col.size
    none = soft_[:0]
    q, masked, elsewhere = (none if t is None else array(t) for t in (query, mask, other))
    ds, dq, dt, du = fresh(E, like=u), fresh(0 if query is None else N, like=u), fresh(N, like=u), np.empty_like(u_)
    score, parts = (q, token_, scalar(slope, token)), (*kept, elsewhere)
    run_rows(_form_rows_backward, N, 60 * E, rows.rowptr, rows.col, score, soft_, masked, u_, dg_, parts, ds, dq)
    run_rows(_form_columns_backward, N, 50 * E, rows.rowptr_t, rows.col_t, rows.edge_t, ds, array(alpha), dg_, dt, du)
    return ds, None if query is None else torch.from_numpy(dq), torch.from_numpy(dt), torch.from_numpy(du)
