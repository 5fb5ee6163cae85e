"""Whole layers in one operation each: a graph convolution, and a pooling up to the features of the kept clusters.

Outside torch.compile every operation has a fixed cost in autograd's graph, which dominates for small graphs. These two
run the forward and backward passes of the single operations one after the other inside one autograd.Function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asapool.errors import AsapoolError
from asapool.kernels.fused.attend import cluster_max_backward, cluster_max_rows, scores
from asapool.kernels.fused.dynamic import dynamic_backward, dynamic_scores
from asapool.kernels.fused.gather import gather_backward, gather_rows, scatter_backward
from asapool.kernels.fused.memberships import form_memberships, form_memberships_backward
from asapool.kernels.fused.operation import array, without_autocast
from asapool.kernels.fused.project import project_backward, project_rows
from asapool.kernels.fused.propagate import activate_backward, activate_rows, propagate_backward, propagate_rows
from asapool.kernels.fused.score import score_backward, score_rows
from asapool.kernels.fused.select import select_graphs
from asapool.kernels.graph import Pattern, Rows


class Convolve(torch.autograd.Function):
    """y = σ(N x Wᵀ + b), N = GCN's weights; the narrower side of W travels along the edges."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any, rows: Rows, n: Tensor, x: Tensor, W: Tensor, bias: Tensor | None, relu: bool, first: bool
    ) -> Tensor:
        """first: multiply by W first."""
        if first:
            h = torch.mm(x, W.t())
            y = propagate_rows(rows, n, h, bias, relu)
        else:
            h = propagate_rows(rows, n, x, None, False)
            y = torch.mm(h, W.t())
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
        _first_derivatives_only()
        n, x, W, h, y = ctx.saved_tensors
        _, needs_n, needs_x, needs_W, needs_b, _, _ = ctx.needs_input_grad
        g, db, dn, dx, dW = grads[0].contiguous(), None, None, None, None
        if ctx.first:
            need = [needs_n, needs_x or needs_W, needs_b]
            dn, dh, db = propagate_backward(ctx.rows, g, n, h, y if ctx.relu else h, ctx.relu, need)
            dW = torch.mm(dh.t(), x) if needs_W else None
            dx = torch.mm(dh, W) if needs_x else None
        else:
            if ctx.relu:
                g, db = activate_backward(g, y, [True, True])
            elif needs_b:
                db = g.sum(0)
            dW = torch.mm(g.t(), h) if needs_W else None
            if needs_n or needs_x:
                dh = torch.mm(g, W)
                dn, dx, _ = propagate_backward(ctx.rows, dh, n, x, x, False, [needs_n, needs_x, False])
        return (None, dn if needs_n else None, dx if needs_x else None, dW, db if needs_b else None, None, None)


def convolve(
    pattern: Pattern, n: Tensor, x: Tensor, W: Tensor, bias: Tensor | None = None, relu: bool = False
) -> Tensor:
    """GCN's layer: x (N, in), W (out, in), bias (out,); returns (N, out)."""
    y: Tensor = Convolve.apply(pattern.rows, n, x, W, bias, relu, W.size(1) >= W.size(0))  # type: ignore[no-untyped-call]
    return y


class PoolSpec(NamedTuple):
    """What a pooling reads besides its weights.

    slope_token: of LeakyReLU inside the token's part of the score; slope: of the one around the sum. weighted, loops:
    whether the fitness sees the edge weights, and a node as its own neighbour. keep (B,): how many clusters stay.
    gather: whether the features of the kept clusters are formed here; otherwise they are an empty (0, F).
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
        """W, b: of the inner GCN with its weights n. w: the token's. v, c (1,): the query's. U, u_b: the fitness's.

        Q, q_b, T: of the dynamic attention, for query and token, whose scores are wᵀσ(Q m_i + q_b + T x'_j).
        """
        inner, h = x, None
        if W is not None and n is not None:
            h = torch.mm(x, W.t())
            inner = propagate_rows(spec.edges, n, h, b, False)
        m, query = None, None
        if Q is not None and q_b is not None and T is not None:
            m = cluster_max_rows(spec.clusters, inner)
            query, token = torch.addmm(q_b, m, Q.t()), torch.mm(inner, T.t())
            power = dynamic_scores(spec.clusters, query, token, w, spec.slope)
        else:
            token = project_rows(inner, w, spec.slope_token)
            if v is not None and c is not None:
                m = cluster_max_rows(spec.clusters, inner)
                query = project_rows(m, v, 1.0).add_(c)
            power = scores(spec.clusters, query, token, spec.slope)
        u = torch.mm(x, U)
        soft, alpha, gathered = form_memberships(spec.clusters, power, mask, u, u_b)
        phi = score_rows(spec.edges, A if spec.weighted else None, gathered, spec.loops).view(-1).sigmoid_()
        perm, kept = select_graphs(phi, spec.ptr, spec.keep, fittest_first=False)
        x_p = gather_rows(spec.clusters, alpha, x, phi, perm) if spec.gather else x.new_empty(0, x.size(1))
        ctx.spec = spec
        own = None if W is None else inner  # without an inner GCN it is x
        attention = (mask, h, own, token, m, query, soft, Q, T)
        ctx.save_for_backward(x, n, A, W, w, v, U, *attention, u, gathered, alpha, phi, perm)
        ctx.mark_non_differentiable(perm, kept)
        ctx.set_materialize_grads(False)
        return x_p, alpha, phi, perm, kept

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Backward of every step, in reverse order."""
        _first_derivatives_only()
        spec: PoolSpec = ctx.spec
        x, n, A, W, w, v, U, *attention, u, gathered, alpha, phi, perm = ctx.saved_tensors
        mask, h, inner, token, m, query, soft, Q, T = attention
        needs = dict(zip(INPUTS, ctx.needs_input_grad, strict=True))
        out: dict[str, Tensor | None] = {}
        dx, dphi, kept = None, grads[2], (array(alpha)[:0], np.full(phi.numel(), -1))
        if grads[0] is not None and spec.gather:
            g = grads[0].contiguous()
            dalpha, own, place = gather_backward(spec.clusters, g, alpha, x, phi, perm)
            dphi, kept = torch.from_numpy(own) if dphi is None else dphi + torch.from_numpy(own), (dalpha, place)
            dx = scatter_backward(spec.clusters, g, alpha, phi, place) if needs["x"] else None
        dg = torch.zeros_like(u)
        if dphi is not None:
            slope, weighted = (dphi * phi).mul_(1 - phi).view(-1, 1), A if spec.weighted else None
            dA, dg = score_backward(
                spec.edges, slope, weighted, gathered, spec.loops, [spec.weighted and needs["A"], True]
            )
            out["A"] = dA if spec.weighted else None
        other = None if grads[1] is None else grads[1].contiguous()
        dynamic = Q is not None  # then the scores have no LeakyReLU around them, and no query and token of one number
        score_inputs: tuple[Tensor | None, Tensor, float]
        score_inputs = (None, torch.zeros_like(phi), 1.0) if dynamic else (query, token, spec.slope)
        ds, dq, dt, du = form_memberships_backward(spec.clusters, *score_inputs, soft, mask, alpha, u, dg, kept, other)
        out["u_b"] = dg.sum(0) if needs["u_b"] else None
        out["U"] = torch.mm(du.t(), x).t()  # three rows at a time are quicker than three columns
        if needs["x"]:
            dx = torch.mm(du, U.t()) if dx is None else dx.addmm_(du, U.t())
        features = x if inner is None else inner
        dm = None
        if dynamic:
            dq, dt, out["w"] = dynamic_backward(spec.clusters, ds, query, token, w, spec.slope)
            out["Q"], out["q_b"], out["T"] = torch.mm(dq.t(), m), dq.sum(0), torch.mm(dt.t(), features)
            d_inner, dm = torch.mm(dt, T), torch.mm(dq, Q)
        else:
            d_inner, out["w"] = project_backward(dt, features, w, spec.slope_token, [True, True])
            if dq is not None:
                dm, out["v"] = project_backward(dq, m, v, 1.0, [True, True])
                out["c"] = dq.sum().view(1)
        if dm is not None:
            d_inner = d_inner.add_(cluster_max_backward(spec.clusters, dm, features, m, [True]))
            del dm
        if W is not None:
            need = [needs["n"], True, needs["b"]]
            out["n"], d_inner, out["b"] = propagate_backward(spec.edges, d_inner, n, h, h, False, need)
            out["W"] = torch.mm(d_inner.t(), x)
            if needs["x"]:
                dx = torch.mm(d_inner, W) if dx is None else dx.addmm_(d_inner, W)
        else:
            dx = d_inner if dx is None else dx.add_(d_inner)
        out["x"] = dx
        return tuple(out.get(name) if needs[name] else None for name in INPUTS)


INPUTS = ("spec", "x", "n", "A", "W", "b", "w", "v", "c", "U", "u_b", "mask", "Q", "q_b", "T")


def form(spec: PoolSpec, *inputs: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Form's inputs without `spec`; returns x_p (K, F), α, φ (N,), the kept centres (K,) and their pointer (B+1,)."""
    formed: tuple[Tensor, Tensor, Tensor, Tensor, Tensor] = Form.apply(spec, *inputs)  # type: ignore[no-untyped-call]
    return formed


def _first_derivatives_only() -> None:
    if torch.is_grad_enabled():
        raise AsapoolError("asapool's operators have first derivatives only; leave out create_graph=True")
