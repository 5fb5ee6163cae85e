"""Our Adam: the numbers of torch.optim.Adam(fused=True) to the bit, and its state in the file of a training."""

import pytest
import torch

from asapool.training.adam import Adam

SHAPES = ((7, 5), (300,), (3,), (2, 2))


def gradients(weights, step):
    """Random gradients; the last weight has none in the first steps."""
    generator = torch.Generator().manual_seed(step)
    for number, weight in enumerate(weights):
        drawn = torch.randn(weight.shape, generator=generator)
        weight.grad = drawn if number < 3 or step > 2 else None


@pytest.mark.parametrize("decoupled", [False, True])
def test_the_numbers_are_those_of_torch(decoupled):
    torch.manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    theirs = [torch.nn.Parameter(weight.detach().clone()) for weight in ours]
    adam = Adam(ours, weight_decay=0.1, decoupled=decoupled)
    peer = (torch.optim.AdamW if decoupled else torch.optim.Adam)(theirs, weight_decay=0.1, fused=True)
    for step in range(6):
        gradients(ours, step)
        gradients(theirs, step)
        peer.param_groups[0]["lr"] = 0.01 * (step + 1)
        adam.step(lr=0.01 * (step + 1))
        peer.step()
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    state = {f"{n}.{name}": value for n, held in peer.state_dict()["state"].items() for name, value in held.items()}
    assert adam.state().keys() == state.keys()
    assert all(torch.equal(adam.state()[name], value) for name, value in state.items())


def test_a_restored_state_continues_with_the_same_bits():
    weights = [torch.nn.Parameter(torch.ones(3))], [torch.nn.Parameter(torch.ones(3))]
    first, second = Adam(weights[0]), Adam(weights[1])
    for step in range(4):
        gradients(weights[0], step)
        first.step(lr=0.1)
        if step == 1:
            weights[1][0].data.copy_(weights[0][0])
            second.load_state({name: value.clone() for name, value in first.state().items()})
        if step > 1:
            gradients(weights[1], step)
            second.step(lr=0.1)
    assert torch.equal(weights[0][0], weights[1][0])
    second.zero_grad()
    assert weights[1][0].grad is None


@pytest.mark.parametrize(("shape", "number"), [((4,), 0), ((3,), 1)])
def test_a_state_of_other_weights_is_refused(shape, number):
    adam = Adam([torch.nn.Parameter(torch.ones(3))])
    state = {f"{number}.{name}": torch.zeros(shape) for name in ("step", "exp_avg", "exp_avg_sq")}
    with pytest.raises(ValueError, match="weight"):
        adam.load_state(state)
