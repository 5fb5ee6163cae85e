"""ASAPooling inside larger programs, row by row of the table in docs/start/pyg.md that no other file tests."""

import copy
import pickle

import pytest
import torch
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from asapool.nn import ASAPooling
from tests.graphs import random_batch, with_random_parameters


@pytest.fixture
def pool(backend):
    return with_random_parameters(ASAPooling(5, backend=backend).double())


def gradients(pool, call):
    """Of the features and of every parameter; None where there is none."""
    x, *others = random_batch(3)
    x.requires_grad_()
    pool.zero_grad()
    out = call(x, *others)
    (out[0].square().sum() + out[2].square().sum()).backward()
    return [x.grad, *(p.grad for p in pool.parameters())]


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(pool, reentrant):
    direct = gradients(pool, pool)
    recomputed = gradients(pool, lambda *parts: checkpoint(pool, *parts, use_reentrant=reentrant))
    assert sum(g is not None for g in direct) > 5
    for one, other in zip(direct, recomputed, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_copies_give_the_same_numbers(pool):
    data = random_batch(4)
    expected = pool(*data)
    averaged = AveragedModel(pool)
    averaged.update_parameters(pool)
    for twin in (copy.deepcopy(pool), pickle.loads(pickle.dumps(pool)), averaged):
        for ours, theirs in zip(twin(*data), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_second_derivatives_of_the_reference():
    pool = with_random_parameters(ASAPooling(3, backend="reference").double())
    x, edge_index, edge_weight, batch = random_batch(5, graphs=2, most=4, F=3)

    def pooled(x, edge_weight):
        out = pool(x, edge_index, edge_weight, batch)
        return out.x.sum() + out.edge_weight.square().sum()

    inputs = [x.requires_grad_(), edge_weight.requires_grad_()]
    assert torch.autograd.gradgradcheck(pooled, inputs, atol=1e-5, fast_mode=True)
