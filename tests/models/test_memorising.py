"""Every method can learn 20 random graphs by heart."""

import pytest
import torch

from asapool.models import ModelConfig, build, method_names
from tests.models.batches import Packed, pack, random_graphs

METHODS = method_names(trainer="gradient", builtin=True)


def batch(dtype):
    sizes = torch.randint(6, 14, (20,), generator=torch.Generator().manual_seed(9)).tolist()
    return Packed(*(t.to(dtype) if t.is_floating_point() else t for t in pack(random_graphs(9, sizes, F=8))))


def epochs_to_learn(model, graphs, y, most):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(most):
        model.train()
        logits, penalty = model.forward_with_penalty(*graphs)
        loss = torch.nn.functional.cross_entropy(logits, y) + penalty
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if epoch % 10 == 9:
            model.eval()
            with torch.no_grad():
                if torch.equal(model(*graphs).argmax(1), y):
                    return epoch + 1
    return None


@pytest.mark.parametrize("method", METHODS)
def test_twenty_random_graphs_are_learned_by_heart(method):
    graphs, y = batch(torch.float32), torch.arange(20) % 2
    model = build(ModelConfig(method=method, hidden=32, dropout=0.0), 8, 2, seed=0, typical_nodes=10)
    assert epochs_to_learn(model, graphs, y, most=400) is not None


OTHERS = [{"semantics": "authors"}, {"conv": "gin"}, {"conv": "sage", "batch_norm": True}]


@pytest.mark.parametrize("options", OTHERS, ids=str)
def test_other_settings_of_asap_learn_them_too(options):
    graphs, y = batch(torch.float32), torch.arange(20) % 2
    model = build(ModelConfig(hidden=32, dropout=0.0, **options), 8, 2, seed=0)
    assert epochs_to_learn(model, graphs, y, most=400) is not None
