"""The layer on the device of --device, by default the CPU, with plain torch: the numbers of the fused loops."""

import copy

import pytest
import torch

from asapool.data import load
from asapool.nn import ASAPooling

OPTIONS = [
    {},
    {"semantics": "authors", "dropout": 0.0},
    {"semantics": "pyg"},
    {"attention": "dynamic", "hops": 2},
    {"attention": "s2t", "fitness": "gcn", "soft_edges": False},
    {"attention": "t2t", "aggregate": "cluster", "max_neighbours": 3},
    {"assign": "members"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_pooling_on_a_device_gives_the_numbers_of_the_loops(options, request):
    name = request.config.getoption("--device")
    batch = load("synthetic:motifs?graphs=8&nodes=11").batch(range(8))
    torch.manual_seed(0)
    fused = ASAPooling(6, backend="fused", **options)
    plain = ASAPooling(6, backend="reference", **options)
    plain.load_state_dict(copy.deepcopy(fused.state_dict()))
    features, weight = torch.randn(len(batch.x), 6), torch.rand(batch.col.numel()) + 0.5
    results = []
    for layer, device in ((fused, "cpu"), (plain.to(name), name)):
        x, w = (t.detach().clone().to(device).requires_grad_() for t in (features, weight))
        pooled = layer(x, batch.edge_index.to(device), w, batch.batch.to(device))
        (pooled.x.square().sum() + pooled.edge_weight.square().sum()).backward()
        gradients = [x.grad, w.grad, *(p.grad for p in layer.parameters())]
        results.append([*pooled, *gradients])
    for expected, got in zip(*results, strict=True):
        assert (expected is None) == (got is None)
        if expected is not None:
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)
