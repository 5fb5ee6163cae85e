"""Pooling in one operation equals its steps one by one, forward and backward."""

import pytest
import torch

from asapool.nn import ASAPooling
from tests.graphs import random_batch, with_random_parameters


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg", "dynamic", "members"])
@pytest.mark.parametrize("read", ["features", "memberships", "fitness", "edges", "all"])
def test_the_steps_one_by_one_give_the_same(semantics, hops, dropout, read, monkeypatch):
    """A hook on the attention makes the layer run its steps one by one."""
    x, edge_index, edge_weight, batch = random_batch(3, graphs=4, most=8, F=5)
    chosen = {"dynamic": {"attention": "dynamic"}, "members": {"assign": "members"}}
    chosen = chosen.get(semantics, {"semantics": semantics})
    pool = with_random_parameters(ASAPooling(5, hops=hops, dropout=dropout, **chosen).double())
    result = []
    for one_by_one in (False, True):
        hook = pool.attention.register_forward_hook(lambda *_: None) if one_by_one else None
        assert takes_its_steps(pool, x, edge_index, edge_weight, batch, monkeypatch) == one_by_one
        inputs = [x.clone().requires_grad_(), edge_weight.clone().requires_grad_()]
        torch.manual_seed(2)
        step = pool.explain(inputs[0], edge_index, inputs[1], batch)
        outputs = {
            "features": step.x,
            "memberships": step.assignment.alpha,
            "fitness": step.fitness,
            "edges": step.after.weight,
        }
        chosen = outputs.values() if read == "all" else [outputs[read]]
        loss = sum((out * torch.linspace(-1, 2, out.numel()).view(out.shape)).sum() for out in chosen)
        wrt = [*inputs, *pool.parameters()]
        grads = torch.autograd.grad(loss, wrt, allow_unused=True)
        zeros = [torch.zeros_like(p) if g is None else g for p, g in zip(wrt, grads, strict=True)]
        result.append([*outputs.values(), step.perm, *zeros])
        if hook is not None:
            hook.remove()
    for ours, theirs in zip(*result, strict=True):
        torch.testing.assert_close(ours, theirs)


def takes_its_steps(pool, x, edge_index, edge_weight, batch, monkeypatch):
    """Whether the layer runs its steps one by one."""
    called = []
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_form", lambda *args: called.append(args) or ASAPooling._form(pool, *args))
        pool.explain(x, edge_index, edge_weight, batch)
    return bool(called)
