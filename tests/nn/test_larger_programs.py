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
    x, edge_index, edge_weight, batch = random_batch(3)
    x, edge_weight = x.requires_grad_(), edge_weight.requires_grad_()
    out = call(x, edge_index, edge_weight, batch)
    used = {name: p for name, p in pool.named_parameters() if p.requires_grad}
    loss = out[0].square().sum() + out[2].square().sum()
    return torch.autograd.grad(loss, [x, edge_weight, *used.values()], allow_unused=True)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(pool, reentrant):
    if reentrant:  # torch.autograd.grad is not supported there, so backward is

        def call(*parts):
            return checkpoint(pool, *parts, use_reentrant=True)

        data = random_batch(3)
        direct, recomputed = [], []
        for run, grads in ((pool, direct), (call, recomputed)):
            pool.zero_grad()
            x = data[0].clone().requires_grad_()
            out = run(x, *data[1:])
            (out[0].square().sum() + out[2].square().sum()).backward()
            grads += [x.grad, *(p.grad for p in pool.parameters())]
    else:
        direct = gradients(pool, pool)
        recomputed = gradients(pool, lambda *parts: checkpoint(pool, *parts, use_reentrant=False))
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
