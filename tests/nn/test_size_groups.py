"""Products over the nodes of each graph: the same in one group and in several."""

import pytest
import torch

from asapool.kernels import pack
from asapool.nn.size_groups import SizeGroups

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def groups_of(sizes):
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    return SizeGroups(pack(NO_EDGES, ptr, int(ptr[-1]))[0])


@pytest.mark.parametrize(
    ("sizes", "count"),
    [([3, 2, 3], 1), ([40, 1, 0, 2, 1, 39, 1], 2), ([1, 64, 1, 16, 1, 4, 0], 4), ([5], 1), ([0, 5], 1)],
)
def test_every_graph_gets_the_product_of_its_own_rows(sizes, count):
    groups, N = groups_of(sizes), sum(sizes)
    assert len(groups.groups) == count
    torch.manual_seed(0)
    S, Z = (torch.randn(N, columns, dtype=torch.float64, requires_grad=True) for columns in (3, 2))
    product = groups.product(S, Z)
    expected = torch.stack([s.T @ z for s, z in zip(S.split(sizes), Z.split(sizes), strict=True)])
    torch.testing.assert_close(product, expected)
    weight = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad((p * weight).sum(), (S, Z)) for p in (product, expected))
    torch.testing.assert_close(ours, theirs)


def test_without_nodes_all_products_are_zero():
    assert groups_of([0, 0]).product(torch.empty(0, 2), torch.empty(0, 3)).tolist() == [[[0.0] * 3] * 2] * 2
    assert groups_of([]).product(torch.empty(0, 2), torch.empty(0, 3)).shape == (0, 2, 3)
