"""Edge masks of torch_geometric's explainers, for models that pool.

An explainer learns one number m_e in (0, 1) for every edge of the graph that it explains, and gives it to every layer
of torch_geometric in the model. A layer behind a pooling works on other edges, and fails. `explainable` gives the mask
to the layers that work on the given edges, and to no others. The layers of asapool take it as part of the graph:

    A_ij ← m_ij A_ij · α_ij ← m_ij α_ij / Σ_k m_ik α_ik, with m_ii = 1

so a pooled edge has its share of the masks in its weight, and m_e = 0 stands for the graph without that edge.
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
        model: called as model(x, edge_index, ...), from layers of asapool.nn, torch_geometric or both.

    Returns:
        The same model for Explainer(...): same numbers, same weights.

    >>> from asapool.nn import ASAPooling
    >>> net = explainable(ASAPooling(4))
    >>> net(torch.randn(3, 4), torch.tensor([[0, 1], [1, 0]])).x.shape
    torch.Size([2, 4])
    """
    return Explainable(model)


class Explainable(nn.Module):
    """A model whose edge masks stand for the edges that it is given, and not for those of pooled graphs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.edges = _mask_holder()()

    def forward(self, x: Tensor, edge_index: Tensor, *args: Any, **kwargs: Any) -> Any:
        """What the model returns, with the mask that an explainer has set."""
        if not self.edges.explain:
            return self.model(x, edge_index, *args, **kwargs)
        mask = self.edges._edge_mask
        mask = mask.sigmoid() if self.edges._apply_sigmoid else mask
        with _masking(edge_index, mask), self._elsewhere_unmasked(edge_index):
            return self.model(x, edge_index, *args, **kwargs)

    @contextmanager
    def _elsewhere_unmasked(self, edge_index: Tensor) -> Iterator[None]:
        """While this runs, a layer of torch_geometric uses its mask only where it gets the edges of the input."""
        from torch_geometric.nn import MessagePassing

        inside = {part for module in self.model.modules() if _is_ours(module) for part in module.modules()}
        with ExitStack() as stack:
            for module in self.model.modules():
                if not isinstance(module, MessagePassing) or not module.explain:
                    continue
                ours = module in inside  # which hands on edges with masked weights

                def before(layer: Any, args: Any, kwargs: Any, ours: bool = ours) -> None:
                    given = (*args, *kwargs.values())
                    layer.explain = not ours and any(_are_same(value, edge_index) for value in given)

                def after(layer: Any, *_: Any) -> None:
                    layer.explain = True

                stack.enter_context(_hooked(module.register_forward_pre_hook(before, with_kwargs=True)))
                stack.enter_context(_hooked(module.register_forward_hook(after, always_call=True)))
            yield


@cache
def _mask_holder() -> Any:
    """A class of modules on which explainers put their mask, and that do nothing else."""
    from torch_geometric.nn import MessagePassing

    class EdgeMask(MessagePassing):  # type: ignore[misc]  # an instance of MessagePassing itself would change its class
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


def _is_ours(module: nn.Module) -> bool:
    return any(kind.__module__.startswith("asapool.") for kind in type(module).__mro__)


def _are_same(given: Any, edge_index: Tensor) -> bool:
    """Whether these are the edges of the input, with self-loops added or not."""
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
    """The mask of the packed entries: 1 on the diagonal, means of edges that are listed more than once."""
    _, slot = kernels.pack(edge_index, pattern.ptr, pattern.diag.numel(), backend=backend)
    total = mask.new_zeros(pattern.col.numel()).index_add(0, slot, mask)
    count = torch.zeros_like(total).index_add(0, slot, torch.ones_like(mask))
    return pattern.fill_diagonal(total / count.clamp(min=1), 1.0)


def mask_memberships(clusters: Pattern, alpha: Tensor, pattern: Pattern, mask: Tensor) -> Tensor:
    """α_ij ← m_ij α_ij / Σ_k m_ik α_ik; a member that is no neighbour, in a cluster of several hops, has m_ij = 1."""
    if clusters is not pattern:
        N = pattern.diag.numel()
        wide, near = clusters.row * N + clusters.col, pattern.row * N + pattern.col
        order = wide.argsort()
        place = order[torch.searchsorted(wide[order], near)]
        mask = torch.ones_like(alpha).index_copy(0, place, mask)
    return clusters.shares(alpha * mask)


def unweighted(graph: Graph, mask: Tensor, *, loops: bool) -> Graph:
    """The graph whose edges count as much as their masks, for a fitness that does not read weights."""
    return Graph(graph.pattern, mask if loops else graph.pattern.fill_diagonal(mask, 0.0))
