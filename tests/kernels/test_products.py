"""Matrix products in tiles: equal to torch's, to the last bit for any number of threads and for any rows around."""

import pytest
import torch
from torch.nn.functional import linear

from asapool.kernels.fused import products
from asapool.kernels.fused.products import PART, ROWS, multiply, multiply_across, multiply_backward, project_to_few

# rows, inputs, outputs: tiles that fit, tiles that overlap, single rows left over, several parts of a sum, one input
SHAPES = ((64, 16, 16), (65, 37, 128), (200, 128, 33), (3 * PART + 5, 64, 64), (PART, 1, 47), (71, 90, 16))


@pytest.fixture(params=[True, False], ids=["tiles", "torch"])
def tiled(request, monkeypatch):
    monkeypatch.setattr(products, "TILED", request.param)
    return request.param


def matrices(shape, dtype):
    n, k, m = shape
    g = torch.Generator().manual_seed(n)
    sizes = ((n, k), (m, k), (m,), (n, m))
    return [torch.randn(size, generator=g, dtype=torch.float64).to(dtype) for size in sizes]


def test_by_hand(tiled):
    """Row i is i times (1, …, 16), summed over two inputs of 1 and 2."""
    x = torch.arange(64.0)[:, None] * torch.tensor([1.0, 2.0])
    W = torch.arange(1.0, 17)[:, None] * torch.tensor([1.0, 0.5])
    y = multiply(x, W, torch.full((16,), 100.0))
    assert y[3].tolist() == [100 + 3 * 2 * c for c in range(1, 17)]
    assert multiply_across(y, x)[0].tolist() == [sum(i * (100 + i * 2 * c) for i in range(64)) for c in (1,)] + [
        sum(2 * i * (100 + i * 2 * 1) for i in range(64))
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equal_to_torch(shape, dtype, tiled):
    x, W, bias, g = matrices(shape, dtype)
    wide = [t.double() for t in (x, W, bias, g)]
    tolerance = 2e-3 if dtype == torch.float32 else 1e-11
    for ours, theirs in (
        (multiply(x, W), wide[0] @ wide[1].t()),
        (multiply(x, W, bias), linear(*wide[:3])),
        (multiply_backward(g, W), wide[3] @ wide[1]),
        (multiply_across(g, x), wide[3].t() @ wide[0]),
        (project_to_few(x, W[:3].t()), wide[0] @ wide[1][:3].t()),
    ):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=tolerance)


def test_results_do_not_depend_on_threads_or_on_the_other_rows(monkeypatch, loops_shared):
    """A row of a tile and a row computed alone have the same bits, so a batch gives what its graphs give."""
    monkeypatch.setattr(products, "TILED", True)
    x, W, bias, g = matrices((20 * PART + 3, 64, 48), torch.float32)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            results.append((multiply(x, W, bias), multiply_backward(g, W), multiply_across(g, x)))
        finally:
            torch.set_num_threads(1)
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))
    first = ROWS - 3
    assert torch.equal(multiply(x[first : first + 67], W, bias), results[0][0][first : first + 67])


def test_gradients(monkeypatch):
    monkeypatch.setattr(products, "TILED", True)
    x, W, bias, _ = (t.requires_grad_() for t in matrices((64, 3, 9), torch.float64))
    assert torch.autograd.gradcheck(products.linear, (x, W, bias))
    assert torch.autograd.gradcheck(products.linear, (x, W))


def test_other_dtypes_are_left_to_torch(tiled):
    with pytest.raises(RuntimeError, match="dtype"):
        multiply(torch.ones(64, 16), torch.ones(16, 16, dtype=torch.float64))
