"""Every method on the device of --device, by default the CPU, with padded batches or plain torch: the same numbers."""

import pytest
import torch

from asapool.data import load
from asapool.models import ModelConfig, build, method_names

GRAPHS = load("synthetic:motifs?graphs=8&nodes=11")


@pytest.mark.parametrize("method", method_names(trainer="gradient", builtin=True))
def test_logits_and_gradients_on_a_device_are_those_of_the_loops(method, request):
    name = request.config.getoption("--device")
    results = []
    for device, backend in (("cpu", "fused"), (name, "reference" if name == "cpu" else "auto")):
        config = ModelConfig(method=method, hidden=6, dropout=0.0, conv_dropout=0.0, backend=backend)
        model = build(config, GRAPHS.num_features, 2, seed=0, typical_nodes=14).to(device).eval()
        batch = GRAPHS.batch(range(8)).to(device)
        logits, penalty = model.forward_with_penalty(*batch.inputs, **model.more(batch))
        (logits.square().sum() + penalty).backward()
        results.append([logits, *(p.grad for p in model.parameters())])
    for expected, got in zip(*results, strict=True):
        assert (expected is None) == (got is None)
        if expected is not None:
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-3, atol=1e-4)
