"""Whole layers as single operations: a graph convolution, and pooling up to the features of the kept clusters.

Outside torch.compile every operation has a fixed autograd overhead, which dominates for small graphs. These two run the
forward and backward passes of the single operations one after the other inside one autograd.Function.

Pooling computes memberships and the input of the fitness from the scores in one pass along the rows: the three sums for
the fitness use the memberships of a row as soon as they are computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.attend import (
    cluster_max_backward,
    cluster_max_rows,
    dynamic_backward,
    dynamic_scores,
    scores,
)
from asapool.kernels.fused.compiled import lookup_loop, run_rows
from asapool.kernels.fused.operation import array, first_derivatives_only, fresh, scalar, without_autocast
from asapool.kernels.fused.products import multiply, multiply_across, multiply_backward, project_to_few
from asapool.kernels.fused.propagate import activate_backward, activate_rows, propagate_backward, propagate_rows
from asapool.kernels.fused.score import (
    project_backward,
    project_pool_backward,
    project_rows,
    score_backward,
    score_rows,
)
from asapool.kernels.fused.select import gather_backward, gather_rows, scatter_backward, select_graphs
from asapool.kernels.graph import Array, Pattern, Rows


@lookup_loop
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


@lookup_loop
def _form_rows_backward(start, stop, rowptr, col, score, soft, mask, u, dg, parts, ds, dq):  # type: ignore[no-untyped-def]
    """∂s_ij = soft_ij (d_ij − Σ_k soft_ik d_ik) σ'(s_ij) with d = mask ⊙ (the parts + ∂gathered_i · u_j).

    ∂query_i = Σ_j ∂s_ij. score: query, token and σ's slope. parts: ∂α from the features of the kept clusters, the
    position of each kept cluster (-1: not kept), and other ∂α. Empty inputs and outputs are skipped.
    """
    query, token, slope = score
    kept, place, other = parts
    zero, one = u.dtype.type(0), u.dtype.type(1)
    for i in range(start, stop):
        a, b, c = dg[i, 0], dg[i, 1], dg[i, 2]
        q = query[i] if query.size else zero
        mean, is_kept = zero, place[i] >= 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            d = a * u[j, 0] + b * u[j, 1] + c * u[j, 2]
            if is_kept:
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


@lookup_loop
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
    """Softmax, memberships α (the same without a mask), and S u + bias; u (N, 3).

    soft: exp of the scores, which becomes the softmax in place.
    """
    alpha = soft if mask is None else np.empty_like(soft)
    masked, u_ = soft[:0] if mask is None else array(mask), array(u)
    b, gathered = np.zeros(3, soft.dtype) if bias is None else array(bias), np.empty_like(u_)
    run_rows(_form_rows, u_.shape[0], 50 * soft.size, rows.rowptr, rows.col, soft, masked, u_, b, alpha, gathered)
    softmax = torch.from_numpy(soft)
    return softmax, softmax if mask is None else torch.from_numpy(alpha), torch.from_numpy(gathered)


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


class Convolve(torch.autograd.Function):
    """y = σ(N x Wᵀ + b), N = GCN's weights; the narrower of x and x Wᵀ is propagated."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, rows: Rows, n: Tensor, x: Tensor, W: Tensor, bias: Tensor | None, relu: bool, first: bool
    ) -> Tensor:
        """first: multiply by W first."""
        if first:
            h = multiply(x, W)
            y = propagate_rows(rows, n, h, bias, relu)
        else:
            h = propagate_rows(rows, n, x, None, False)
            y = multiply(h, W)
            if relu and bias is not None:
                y = activate_rows(y, bias)
            else:
                y = y if bias is None else y.add_(bias)
                y = y.relu_() if relu else y
        ctx.rows, ctx.relu, ctx.first = rows, relu, first
        ctx.save_for_backward(n, x, W, h, y if relu else None)
        return y

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """∂W, ∂b, ∂x and ∂N."""
        first_derivatives_only()
        n, x, W, h, y = ctx.saved_tensors
        _, needs_n, needs_x, needs_W, needs_b, _, _ = ctx.needs_input_grad
        g, db, dn, dx, dW = grads[0].contiguous(), None, None, None, None
        if ctx.first:
            need = [needs_n, needs_x or needs_W, needs_b]
            dn, dh, db = propagate_backward(ctx.rows, g, n, h, y if ctx.relu else h, ctx.relu, need)
            dW = multiply_across(dh, x) if needs_W else None
            dx = multiply_backward(dh, W) if needs_x else None
        else:
            if ctx.relu:
                g, db = activate_backward(g, y, [True, True])
            elif needs_b:
                db = g.sum(0)
            dW = multiply_across(g, h) if needs_W else None
            if needs_n or needs_x:
                dh = multiply_backward(g, W)
                dn, dx, _ = propagate_backward(ctx.rows, dh, n, x, x, False, [needs_n, needs_x, False])
        return (None, dn if needs_n else None, dx if needs_x else None, dW, db if needs_b else None, None, None)


def convolve(
    pattern: Pattern, n: Tensor, x: Tensor, W: Tensor, bias: Tensor | None = None, relu: bool = False
) -> Tensor:
    """GCN's layer: x (N, in), W (out, in), bias (out,); returns (N, out)."""
    y: Tensor = Convolve.apply(pattern.rows, n, x, W, bias, relu, W.size(1) >= W.size(0))  # type: ignore[no-untyped-call]
    return y


class PoolSpec(NamedTuple):
    """The inputs of pooling besides tensors with gradients.

    slope_token: of the LeakyReLU inside the token term of the score; slope: of the one around the sum. weighted, loops:
    whether the fitness uses the edge weights, and counts a node as its own neighbour. keep (B,): number of clusters to
    keep. gather: whether the features of the kept clusters are formed here; otherwise they are an empty (0, F).
    """

    clusters: Rows
    edges: Rows
    ptr: Tensor
    keep: Tensor
    slope_token: float
    slope: float
    weighted: bool
    loops: bool
    gather: bool = True


class Form(torch.autograd.Function):
    """Memberships, fitness, the kept clusters and their features; see asapool.nn.ASAPooling for the formulas."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, spec: PoolSpec, x: Tensor, n: Tensor | None, A: Tensor, W: Tensor | None, b: Tensor | None,
        w: Tensor, v: Tensor | None, c: Tensor | None, U: Tensor, u_b: Tensor | None, mask: Tensor | None,
        Q: Tensor | None, q_b: Tensor | None, T: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
        """W, b, n: of the inner GCN. w: of the token. v, c (1,): of the query. U, u_b: of the fitness.

        Q, q_b, T: of the query and token of dynamic attention, whose scores are wᵀσ(Q m_i + q_b + T x'_j).
        """
        inner, h = x, None
        if W is not None and n is not None:
            h = multiply(x, W)
            inner = propagate_rows(spec.edges, n, h, b, False)
        m, query = None, None
        if Q is not None and q_b is not None and T is not None:
            m = cluster_max_rows(spec.clusters, inner)
            query, token = multiply(m, Q, q_b), multiply(inner, T)
            power = dynamic_scores(spec.clusters, query, token, w, spec.slope)
        else:
            token = project_rows(inner, w, spec.slope_token)
            if v is not None and c is not None:
                m = cluster_max_rows(spec.clusters, inner)
                query = project_rows(m, v, 1.0).add_(c)
            power = scores(spec.clusters, query, token, spec.slope)
        u = project_to_few(x, U)
        soft, alpha, gathered = form_memberships(spec.clusters, power, mask, u, u_b)
        phi = score_rows(spec.edges, A if spec.weighted else None, gathered, spec.loops).view(-1).sigmoid_()
        perm, kept = select_graphs(phi, spec.ptr, spec.keep, fittest_first=False)
        x_p = gather_rows(spec.clusters, alpha, x, phi, perm) if spec.gather else x.new_empty(0, x.size(1))
        ctx.spec = spec
        inner_features = None if W is None else inner  # without an inner GCN it is x
        attention = (mask, h, inner_features, token, m, query, soft, Q, T)
        ctx.save_for_backward(x, n, A, W, w, v, U, *attention, u, gathered, alpha, phi, perm)
        ctx.mark_non_differentiable(perm, kept)
        ctx.set_materialize_grads(False)
        return x_p, alpha, phi, perm, kept

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Backward of every step, in reverse order."""
        first_derivatives_only()
        spec: PoolSpec = ctx.spec
        x, n, A, W, w, v, U, *attention, u, gathered, alpha, phi, perm = ctx.saved_tensors
        mask, h, inner, token, m, query, soft, Q, T = attention
        needs = dict(zip(INPUTS, ctx.needs_input_grad, strict=True))
        out: dict[str, Tensor | None] = {}
        dx, dphi, kept = None, grads[2], (array(alpha)[:0], np.full(phi.numel(), -1))
        if grads[0] is not None and spec.gather:
            g = grads[0].contiguous()
            dalpha, dfitness, place = gather_backward(spec.clusters, g, alpha, x, phi, perm)
            dphi, kept = (
                torch.from_numpy(dfitness) if dphi is None else dphi + torch.from_numpy(dfitness),
                (dalpha, place),
            )
            dx = scatter_backward(spec.clusters, g, alpha, phi, place) if needs["x"] else None
        dg = torch.zeros_like(u)
        if dphi is not None:
            slope, weighted = (dphi * phi).mul_(1 - phi).view(-1, 1), A if spec.weighted else None
            dA, dg = score_backward(
                spec.edges, slope, weighted, gathered, spec.loops, [spec.weighted and needs["A"], True]
            )
            out["A"] = dA if spec.weighted else None
        other = None if grads[1] is None else grads[1].contiguous()
        dynamic = Q is not None  # then the scores have no outer LeakyReLU, and no scalar query and token
        score_inputs: tuple[Tensor | None, Tensor, float]
        score_inputs = (None, torch.zeros_like(phi), 1.0) if dynamic else (query, token, spec.slope)
        ds, dq, dt, du = form_memberships_backward(spec.clusters, *score_inputs, soft, mask, alpha, u, dg, kept, other)
        out["u_b"] = dg.sum(0) if needs["u_b"] else None
        dx = torch.zeros_like(x) if dx is None else dx
        features = x if inner is None else inner
        own = None if dynamic or W is not None else (w, spec.slope_token, dt)  # ∂token that goes straight to x
        out["U"], out["w"] = project_pool_backward(x, U, du, own, dx)
        d_inner, dm = dx, None
        if dynamic:
            dq, dt, out["w"] = dynamic_backward(spec.clusters, ds, query, token, w, spec.slope)
            out["Q"], out["q_b"], out["T"] = multiply_across(dq, m), dq.sum(0), multiply_across(dt, features)
            d_inner, dm = multiply_backward(dt, T), multiply_backward(dq, Q)
        elif W is not None:
            d_inner, out["w"] = project_backward(dt, features, w, spec.slope_token, [True, True])
        if not dynamic and dq is not None:
            dm, out["v"] = project_backward(dq, m, v, 1.0, [True, True])
            out["c"] = dq.sum().view(1)
        if dm is not None:
            d_inner = d_inner.add_(cluster_max_backward(spec.clusters, dm, features, m, [True]))
            del dm
        if W is not None:
            need = [needs["n"], True, needs["b"]]
            out["n"], d_inner, out["b"] = propagate_backward(spec.edges, d_inner, n, h, h, False, need)
            out["W"] = multiply_across(d_inner, x)
            if needs["x"]:
                dx.add_(multiply_backward(d_inner, W))
        elif d_inner is not dx:
            dx.add_(d_inner)
        out["x"] = dx
        return tuple(out.get(name) if needs[name] else None for name in INPUTS)


INPUTS = ("spec", "x", "n", "A", "W", "b", "w", "v", "c", "U", "u_b", "mask", "Q", "q_b", "T")


def form(spec: PoolSpec, *inputs: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Apply Form; returns x_p (K, F), α, φ (N,), the kept centres (K,) and their pointer (B+1,)."""
    formed: tuple[Tensor, Tensor, Tensor, Tensor, Tensor] = Form.apply(spec, *inputs)  # type: ignore[no-untyped-call]
    return formed
