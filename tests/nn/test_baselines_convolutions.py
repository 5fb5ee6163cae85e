"""GIN and GraphSAGE: the formula in dense algebra, and torch_geometric's numbers."""

import pytest
import torch

from asapool.errors import ConfigError
from asapool.nn import GCN, GIN, SAGE
from asapool.nn.convolutions import convolution
from tests.graphs import random_batch

SHAPES = [(5, 3), (5, 5), (5, 9)]


def dense(x, edges, weight):
    A = torch.zeros(len(x), len(x)).double()
    A[edges[1], edges[0]] = weight
    return A


@pytest.mark.parametrize(("F", "C"), SHAPES)
def test_gin_is_its_formula(F, C, backend):
    x, edges, weight, _ = random_batch(1, directed=True, loops=True)
    conv = GIN(F, C, relu=True, backend=backend).double()
    h = (x + dense(x, edges, weight) @ x) @ conv.first.weight.t() + conv.first.bias
    expected = (h.relu() @ conv.second.weight.t() + conv.second.bias).relu()
    torch.testing.assert_close(conv(x, edges, weight), expected)


@pytest.mark.parametrize(("F", "C"), SHAPES)
def test_sage_is_its_formula(F, C, backend):
    x, edges, weight, _ = random_batch(2, graphs=6, directed=True, loops=True)
    conv = SAGE(F, C, relu=True, backend=backend).double()
    A = dense(x, edges, weight)
    mean = (A / A.sum(1, keepdim=True).where(A.sum(1, keepdim=True) > 0, 1)) @ x
    expected = (x @ conv.W.weight.t() + conv.W.bias + mean @ conv.V.weight.t()).relu()
    torch.testing.assert_close(conv(x, edges, weight), expected)


def test_gin_and_sage_equal_torch_geometric():
    from torch_geometric.nn import GINConv, SAGEConv

    x, edges, _, _ = random_batch(3, weighted=False)
    gin, sage = GIN(5, 4).double(), SAGE(5, 4).double()
    theirs = GINConv(torch.nn.Sequential(gin.first, torch.nn.ReLU(), gin.second))  # draws these weights anew
    torch.testing.assert_close(gin(x, edges), theirs(x, edges))
    theirs = SAGEConv(5, 4).double()
    theirs.load_state_dict({"lin_l.weight": sage.V.weight, "lin_l.bias": sage.W.bias, "lin_r.weight": sage.W.weight})
    torch.testing.assert_close(sage(x, edges), theirs(x, edges))


@pytest.mark.parametrize("name", ["gcn", "gin", "sage"])
def test_gradients_are_those_of_the_formula(name):
    x, edges, weight, _ = random_batch(4, graphs=1, most=5, F=2)
    torch.manual_seed(0)
    conv = convolution(name, 2, 3, backend="reference").double()
    inputs = (x.requires_grad_(), weight.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, w: conv(x, edges, w), inputs)


def test_a_convolution_by_its_name():
    assert isinstance(convolution("gcn", 2, 3, loops="fill"), GCN)
    assert convolution("gcn", 2, 3, loops="fill").loops == "fill"
    assert convolution("sage", 2, 3, relu=True).relu
    with pytest.raises(ConfigError, match="'gcn', 'gin', 'sage'"):
        convolution("gat", 2, 3)
    with pytest.raises(ConfigError, match="in_channels of GIN must be a whole number"):
        GIN(0, 3)
