"""Batch normalisation with ReLU, dropout and a residual in one operation: the numbers of the separate steps."""

import itertools

import pytest
import torch

from asapool import kernels
from asapool.errors import AsapoolError
from asapool.kernels.fused import Extras, RunningStatistics, batch_norm
from asapool.kernels.rng import drawing_from
from asapool.kernels.shards import Shard
from asapool.nn import NodeNorm
from tests.graphs import with_random_parameters


def norm_of(channels, dtype=torch.float64):
    """A layer with random weights and running statistics."""
    torch.manual_seed(1)
    norm = with_random_parameters(NodeNorm(channels).to(dtype))
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def results(norm, x, residual, **options):
    """The output, all gradients and the running statistics."""
    x, residual = x.clone().requires_grad_(), None if residual is None else residual.clone().requires_grad_()
    with drawing_from(torch.Generator().manual_seed(3)):
        y = norm.activated(x, residual=residual, **options)
    (y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).cos()).sum().backward()
    gradients = [t.grad for t in (x, residual, norm.weight, norm.bias) if t is not None]
    return [y.detach(), *gradients, norm.running_mean, norm.running_var, norm.num_batches_tracked]


def test_by_hand(backend):
    """1, 3, 5 have mean 3 and variance 8/3; doubled and shifted by 1 the first is negative, and r is added last."""
    norm = NodeNorm(1)
    torch.nn.init.constant_(norm.weight, 2)
    torch.nn.init.ones_(norm.bias)
    norm.eps = 1e-9
    y = norm.activated(torch.tensor([[1.0], [3.0], [5.0]]), residual=torch.full((3, 1), 10.0), backend=backend)
    torch.testing.assert_close(y.view(-1), torch.tensor([10, 11, 11 + 4 / (8 / 3) ** 0.5]))
    torch.testing.assert_close(norm.running_mean, torch.tensor([0.3]))  # 0.9 · 0 + 0.1 · 3
    torch.testing.assert_close(norm.running_var, torch.tensor([0.9 + 0.1 * 4]))  # with Bessel's correction


@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("training", [True, False])
def test_one_operation_equals_the_steps(rows, training):
    x, r = 3 * torch.randn(rows, 7, dtype=torch.float64) + 5, torch.randn(rows, 7, dtype=torch.float64)
    for relu, p, residual in itertools.product((True, False), (0.0, 0.3), (None, r)):
        one, steps = (
            results(norm_of(7).train(training), x, residual, relu=relu, p=p, backend=backend)
            for backend in ("fused", "reference")
        )
        torch.testing.assert_close(one, steps)


def test_float32_with_a_large_mean_is_as_exact_as_torch():
    x = torch.randn(5000, 3) + torch.tensor([0.0, 100.0, -3000.0])
    exact = results(norm_of(3), x.double(), None, backend="reference")[0]
    ours = results(norm_of(3, torch.float32), x, None)[0]
    theirs = results(norm_of(3, torch.float32), x, None, backend="reference")[0]
    assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max()


def test_gradients():
    norm, x, r = norm_of(3), torch.randn(70, 3, dtype=torch.float64), torch.randn(70, 3, dtype=torch.float64)
    inputs = [x.requires_grad_(), r.requires_grad_(), *norm.parameters()]

    def call(*_):
        with drawing_from(torch.Generator().manual_seed(3)):
            return norm.activated(x, residual=r, p=0.2, backend="fused")

    assert torch.autograd.gradcheck(call, inputs)
    with pytest.raises(AsapoolError, match="only first derivatives"):
        torch.autograd.grad(call().sum(), [x], create_graph=True)


def test_any_number_of_threads_gives_the_same_bits(loops_shared):
    x, r = torch.randn(3000, 5), torch.randn(3000, 5)
    several = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        several.append(results(norm_of(5, torch.float32), x, r, p=0.3))
    for other in several[1:]:
        assert all(torch.equal(a, b) for a, b in zip(several[0], other, strict=True))


class Recorded:
    """The exchange of two processes of which the other one's numbers are known."""

    def __init__(self, rank, parts):
        self.rank, self.parts = rank, parts

    def gather(self, own):
        torch.testing.assert_close(own, self.parts[self.rank])
        return torch.stack(self.parts)


def test_shared_batches_have_the_statistics_and_the_mask_of_the_whole():
    x, cut = torch.randn(90, 4, dtype=torch.float64), 37
    whole = results(norm_of(4), x, None, p=0.3)[0]
    parts = [
        torch.stack([torch.full((4,), float(len(part))).double(), part.mean(0), part.var(0, correction=0)])
        for part in (x[:cut], x[cut:])
    ]
    for rank, rows in enumerate((slice(0, cut), slice(cut, None))):
        norm = norm_of(4)
        with drawing_from(torch.Generator().manual_seed(3)):
            seed = int(kernels.draw_seed())
        running = RunningStatistics(norm.running_mean, norm.running_var, 0.1, False)
        shard = Shard(rank, 2, Recorded(rank, parts))
        with torch.no_grad():
            y = batch_norm(x[rows], norm.weight, norm.bias, None, norm.eps, running, Extras(True, 0.3, seed), shard)
        torch.testing.assert_close(y, whole[rows])


def test_hooks_of_the_layer_are_called():
    norm, seen = norm_of(2), []
    x = torch.randn(5, 2, dtype=torch.float64)
    before = norm.activated(x)
    norm.register_forward_hook(lambda module, given, y: seen.append(y) or 2 * y)
    torch.testing.assert_close(norm.activated(x), 2 * before)
    assert len(seen) == 1
