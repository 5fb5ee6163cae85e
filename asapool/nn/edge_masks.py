"""Edge masks of torch_geometric's explainers, for models that pool.

An explainer learns one number m_e in (0, 1) for every edge of the graph that it explains, and sets it on every layer of
torch_geometric in the model. A layer after a pooling layer works on other edges, and fails. `explainable` applies the
mask only in layers that work on the input edges. The layers of asapool treat it as part of the graph:

    A_ij ← m_ij A_ij · α_ij ← m_ij α_ij / Σ_k m_ik α_ik, with m_ii = 1

so the weight of a pooled edge includes the masks, and m_e = 0 means the graph without that edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.kernels import Graph, Pattern

_masked: ContextVar[tuple[Tensor, Tensor] | None] = ContextVar("asapool_edge_mask", default=None)


def explainable(model: nn.Module) -> Explainable:
    """Prepare a model with pooling layers for torch_geometric's explainers with edge masks.

    Args:
        model: called as model(x, edge_index, ...), with layers of asapool.nn, torch_geometric or both.

    Returns:
        The model to pass to Explainer(...): same outputs, shared weights.

    >>> from asapool.nn import ASAPooling
    >>> net = explainable(ASAPooling(4))
    >>> net(torch.randn(3, 4), torch.tensor([[0, 1], [1, 0]])).x.shape
    torch.Size([2, 4])
    """
    return Explainable(model)


class Explainable(nn.Module):
    """A model whose edge masks apply to the input edges, and not to those of pooled graphs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.edges = _mask_holder()()

    def forward(self, x: Tensor, edge_index: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The output of the model, with the mask that an explainer has set."""
        if not self.edges.explain:
            return self.model(x, edge_index, *args, **kwargs)
        mask = self.edges._edge_mask
        mask = mask.sigmoid() if self.edges._apply_sigmoid else mask
        with _masking(edge_index, mask), self._only_input_edges_masked(edge_index):
            return self.model(x, edge_index, *args, **kwargs)

    @contextmanager
    def _only_input_edges_masked(self, edge_index: Tensor) -> Iterator[None]:
        """In this context a layer of torch_geometric uses its mask only if it is called with the input edges."""
        from torch_geometric.nn import MessagePassing

        inside = {part for module in self.model.modules() if _is_asapool(module) for part in module.modules()}
        with ExitStack() as stack:
            for module in self.model.modules():
                if not isinstance(module, MessagePassing) or not module.explain:
                    continue
                nested = module in inside  # inside a layer of asapool, which passes it masked weights

                def before(layer: Any, args: Any, kwargs: Any, nested: bool = nested) -> None:
                    given = (*args, *kwargs.values())
                    layer.explain = not nested and any(_are_same(value, edge_index) for value in given)

                def after(layer: Any, *_: Any) -> None:
                    layer.explain = True

                stack.enter_context(_hooked(module.register_forward_pre_hook(before, with_kwargs=True)))
                stack.enter_context(_hooked(module.register_forward_hook(after, always_call=True)))
            yield


@cache
def _mask_holder() -> Any:
    """A module class on which explainers set their mask and which does nothing else."""
    from torch_geometric.nn import MessagePassing

    class EdgeMask(MessagePassing):  # type: ignore[misc]  # a subclass, because an instance changes its class
        pass

    return EdgeMask


@contextmanager
def _hooked(handle: Any) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _masking(edge_index: Tensor, mask: Tensor) -> Iterator[None]:
    token = _masked.set((edge_index, mask))
    try:
        yield
    finally:
        _masked.reset(token)


def _is_asapool(module: nn.Module) -> bool:
    return any(kind.__module__.startswith("asapool.") for kind in type(module).__mro__)


def _are_same(given: Any, edge_index: Tensor) -> bool:
    """Whether these are the input edges, with or without added self-loops."""
    if given is edge_index:
        return True
    if not isinstance(given, Tensor) or given.dtype != torch.int64 or given.dim() != 2 or given.size(0) != 2:
        return False
    return torch.equal(given[:, given[0] != given[1]], edge_index[:, edge_index[0] != edge_index[1]])


def mask_of(edge_index: Tensor) -> Tensor | None:
    """The mask (E,) of these edges, if they are being explained."""
    if torch.compiler.is_compiling():
        return None
    masked = _masked.get()
    same = masked is not None and (edge_index is masked[0] or torch.equal(edge_index, masked[0]))
    return masked[1] if masked is not None and same else None


def pack_mask(mask: Tensor, edge_index: Tensor, pattern: Pattern, backend: str) -> Tensor:
    """The mask of the packed entries: 1 on the diagonal, the mean for edges that are listed more than once."""
    _, slot = kernels.pack(edge_index, pattern.ptr, pattern.diag.numel(), backend=backend)
    total = mask.new_zeros(pattern.col.numel()).index_add(0, slot, mask)
    count = torch.zeros_like(total).index_add(0, slot, torch.ones_like(mask))
    return pattern.fill_diagonal(total / count.clamp(min=1), 1.0)


def mask_memberships(clusters: Pattern, alpha: Tensor, pattern: Pattern, mask: Tensor) -> Tensor:
    """α_ij ← m_ij α_ij / Σ_k m_ik α_ik; in a cluster of several hops, members that are not neighbours have m_ij = 1."""
    if clusters is not pattern:
        N = pattern.diag.numel()
        wide, near = clusters.row * N + clusters.col, pattern.row * N + pattern.col
        order = wide.argsort()
        place = order[torch.searchsorted(wide[order], near)]
        mask = torch.ones_like(alpha).index_copy(0, place, mask)
    return clusters.shares(alpha * mask)


def unweighted(graph: Graph, mask: Tensor, *, loops: bool) -> Graph:
    """The graph with the masks as edge weights, for a fitness that ignores the real weights."""
    return Graph(graph.pattern, mask if loops else graph.pattern.fill_diagonal(mask, 0.0))
