"""bfloat16 and autocast: fewer digits, otherwise the same numbers."""

import pytest
import torch

from asapool.models import ModelConfig, build, method_names
from asapool.nn import GCN, SAGE, ASAPooling, LEConv
from tests.graphs import random_batch

METHODS = method_names(trainer="gradient", builtin=True)

N = 1000
STAR = torch.stack([torch.zeros(N, dtype=torch.int64), torch.arange(1, N + 1)])
STAR = torch.cat([STAR, STAR.flip(0)], dim=1)


@pytest.mark.parametrize("layer_type", [GCN, LEConv, SAGE])
def test_a_node_of_a_thousand_neighbours_in_bfloat16(layer_type):
    """Sums of ones in bfloat16 stop at 256; these are computed in float32."""
    torch.manual_seed(0)
    layer = layer_type(4, 2)
    x = torch.rand(N + 1, 4).bfloat16().float()
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(p.bfloat16())
        expected = layer(x, STAR)
        got = layer.bfloat16()(x.bfloat16(), STAR)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got[0].float(), expected[0], rtol=0.02, atol=0.02)


def test_a_thousand_equal_edges_in_bfloat16():
    edges = torch.tensor([[0, 1], [1, 0]]).repeat(1, N)
    _, _, weight, _, _ = ASAPooling(2, ratio=1.0, soft_edges=False).bfloat16()(torch.ones(2, 2).bfloat16(), edges)
    assert weight.tolist() == [N, N]


def test_a_layer_under_autocast(backend):
    torch.manual_seed(0)
    pool = ASAPooling(5, backend=backend)
    data = random_batch(3, dtype=torch.float32)
    expected = pool(*data)
    with torch.autocast("cpu", torch.bfloat16):
        got = pool(*data)
        got.x.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in pool.parameters())
    if backend != "reference":  # the loops work in the dtype they are given
        torch.testing.assert_close(got.x, expected.x)
        assert torch.equal(got.perm, expected.perm)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_under_autocast(method):
    """Also after a layer that returns bfloat16."""
    model = build(ModelConfig(method=method, hidden=8), 5, 2, seed=0, typical_nodes=6)
    parts = [torch.tensor([0, 3, 5]), torch.tensor([0, 1, 3, 4, 5, 6]), torch.tensor([1, 0, 2, 1, 4, 3])]
    torch.manual_seed(0)
    x, before = torch.randn(5, 5), torch.nn.Linear(5, 5)
    for given in (lambda: x, lambda: before(x)):
        expected = model.eval()(given(), *parts)
        with torch.autocast("cpu", torch.bfloat16):
            got = model(given(), *parts)
        torch.nn.functional.cross_entropy(got.float(), torch.tensor([0, 1])).backward()
        torch.testing.assert_close(got.float(), expected, rtol=0.1, atol=0.1)
