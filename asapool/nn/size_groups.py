"""Products over the nodes of each graph, for graphs of very different sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels import Pattern


class SizeGroups:
    """Graphs of a batch in groups of similar size, for products of the rows of each graph: SᵀZ per graph.

    A group is a batched product of blocks that are padded to its largest graph. One group would be mostly padding if
    graphs differ a lot: in D&D the largest has twenty times as many nodes as the mean.
    """

    MOST_PADDING = 2  # rows with padding per row, up to which one group is faster than several

    def __init__(self, pattern: Pattern) -> None:
        ptr = pattern.ptr
        sizes = ptr.diff().tolist()
        self.B = len(sizes)
        order = sorted(range(self.B), key=lambda b: -sizes[b])
        groups: list[list[int]] = []
        one = self.B and self.B * sizes[order[0]] <= self.MOST_PADDING * sum(sizes)
        for b in order:
            if groups and (one or 2 * sizes[b] >= sizes[groups[-1][0]]):
                groups[-1].append(b)
            elif sizes[b]:
                groups.append([b])
        # for every group: its graphs, its rows, their places in the blocks, and the rows of a block
        self.groups: list[tuple[Tensor, Tensor | None, Tensor, int]] = []
        N, batch = int(ptr[-1]) if self.B else 0, pattern.batch
        within = torch.arange(N, device=ptr.device) - ptr[batch]
        for members in groups:
            n, graphs = sizes[members[0]], torch.tensor(sorted(members), device=ptr.device)
            if len(groups) == 1 and len(members) == self.B:
                self.groups.append((graphs, None, batch * n + within, n))
                continue
            block = ptr.new_full((self.B,), -1).index_copy(0, graphs, torch.arange(len(graphs), device=ptr.device))
            rows = (block[batch] >= 0).nonzero().view(-1)
            self.groups.append((graphs, rows, block[batch[rows]] * n + within[rows], n))

    def product(self, S: Tensor, Z: Tensor) -> Tensor:
        """Σ_i S_i ⊗ Z_i over the nodes i of each graph: S (N, K), Z (N, C); returns (B, K, C), zero without nodes.

        >>> from asapool.kernels import pack
        >>> pattern, _ = pack(torch.empty(2, 0, dtype=torch.long), torch.tensor([0, 2, 2, 3]), 3)
        >>> SizeGroups(pattern).product(torch.tensor([[1.], [2.], [3.]]), torch.ones(3, 1)).flatten().tolist()
        [3.0, 0.0, 3.0]
        """
        result = S.new_zeros(self.B, S.size(1), Z.size(1))
        for graphs, rows, place, n in self.groups:
            product = self._block(S, len(graphs), rows, place, n).mT @ self._block(Z, len(graphs), rows, place, n)
            if rows is None:
                return product
            result = result.index_copy(0, graphs, product)
        return result

    @staticmethod
    def _block(x: Tensor, B: int, rows: Tensor | None, place: Tensor, n: int) -> Tensor:
        """Zero-padded blocks of the rows of a group, (B, n, F)."""
        kept = x if rows is None else x.index_select(0, rows)
        return x.new_zeros(B * n, x.size(1)).index_copy(0, place, kept).view(B, n, x.size(1))
