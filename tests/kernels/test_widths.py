"""Rows of every width: whole vectors, what remains of them, and rows shorter than one vector; in both dtypes."""

import pytest
import torch

from asapool import kernels
from asapool.kernels.fused.compiled import BLOCK
from asapool.kernels.fused.score import project_pool_backward
from tests.kernels.chain import GRAPHS

WIDTHS = (1, 2, 3, 5, 8, 13, 15, 16, 17, 23, 31, 32, 33, 48, 64, 65, 90, 128, 130)  # vectors have 16 or 8 numbers
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}
BACKENDS = ("reference", "fused")


def inputs_of(width, dtype):
    _, edge_index, edge_weight, ptr = GRAPHS["mixed"]()
    g = torch.Generator().manual_seed(width)
    N = int(ptr[-1])
    pattern, slot = kernels.pack(edge_index, ptr, N, backend="reference")
    weight = torch.zeros(pattern.col.numel(), dtype=dtype).index_add(0, slot, edge_weight.to(dtype))
    return pattern, weight, torch.randn(N, width, generator=g, dtype=torch.float64).to(dtype), g


def leaves(*tensors):
    return [t.clone().requires_grad_() for t in tensors]


def compare(results, dtype):
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_over_neighbours(width, dtype):
    """Along the rows with and without a bias, and along the columns in the gradient; ReLU."""
    pattern, weight, x, g = inputs_of(width, dtype)
    bias = torch.randn(width, generator=g, dtype=torch.float64).to(dtype)
    results = []
    for backend in BACKENDS:
        inputs = leaves(weight, x, bias)
        y = kernels.propagate(pattern, *inputs, True, backend=backend)
        plain = kernels.propagate(pattern, *inputs[:2], backend=backend)
        (y.square().sum() + (plain * bias).sum()).backward()
        results.append([y, plain, *(t.grad for t in inputs)])
    compare(results, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_gins_sums_and_features_of_clusters(width, dtype):
    pattern, weight, x, g = inputs_of(width, dtype)
    alpha = torch.rand(weight.numel(), generator=g).to(dtype)
    phi = torch.rand(len(x), generator=g).to(dtype)
    perm, _ = kernels.select(phi, pattern.ptr, (pattern.ptr.diff() + 1) // 2)
    results = []
    for backend in BACKENDS:
        inputs = leaves(weight, x, torch.tensor(0.25, dtype=dtype), alpha, phi)
        w, x_, eps, a, fitness = inputs
        y = kernels.sum_neighbours(pattern, w, x_, eps, backend=backend)
        kept = kernels.gather(pattern, a, x_, fitness, perm, backend=backend)
        (y.square().sum() + kept.pow(3).sum()).backward()
        results.append([y, kept, *(t.grad for t in inputs)])
    compare(results, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("token", [True, False])
def test_gradients_of_the_projections_in_pooling(width, dtype, token):
    """Three columns and the token of the score are projected from the same rows, which are more than one block."""
    N, g = BLOCK + 7, torch.Generator().manual_seed(width)
    x, U, w, du, dt, before = (
        torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)
        for shape in ((N, width), (width, 3), (width,), (N, 3), (N,), (N, width))
    )
    x_, U_, w_ = leaves(x, U, w)
    projected = torch.nn.functional.leaky_relu(x_, 0.2) @ w_ if token else torch.zeros(N, dtype=dtype)
    ((x_ @ U_ * du).sum() + (projected * dt).sum()).backward()
    dx = before.clone()
    dU, dw = project_pool_backward(x, U, du, (w, 0.2, dt) if token else None, dx)
    compare([[dx, dU, dw], [before + x_.grad, U_.grad, w_.grad if token else torch.zeros_like(w)]], dtype)


@pytest.mark.parametrize("width", [3, 16, 40])
def test_nan_and_infinity_go_through_sums_and_relu(width):
    pattern = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 3]), 3)[0]
    x, weight = torch.ones(3, width), torch.ones(pattern.col.numel())
    x[0, 0], x[1, width - 1] = torch.nan, -torch.inf
    y = [kernels.propagate(pattern, weight, x, None, True, backend=backend) for backend in BACKENDS]
    assert int(y[1].isnan().sum()) == 2  # of the two rows that are neighbours, in one column only
    torch.testing.assert_close(*y, equal_nan=True)
    g = torch.ones(3, width)
    gradients = []
    for backend in BACKENDS:
        w = weight.clone().requires_grad_()
        kernels.propagate(pattern, w, x, backend=backend).backward(g)
        gradients.append(w.grad)
    torch.testing.assert_close(*gradients, equal_nan=True)
