"""Selecting the fittest nodes by bisection equals sorting, including ties and NaN."""

import pytest
import torch

from asapool import kernels
from asapool.kernels.fused.select import select_graphs

NAN = float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["smooth", "few values", "all alike", "tiny", "with nan", "mostly nan", "ends"])
def test_bisection_selects_what_sorting_selects(kind, dtype):
    g = torch.Generator().manual_seed(1)
    sizes = torch.tensor([1, 2, 3, 0, 40, 7, 300, 5])
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    values = torch.rand(int(ptr[-1]), generator=g, dtype=dtype)
    values = {
        "smooth": values,
        "few values": (4 * values).round() / 4,
        "all alike": torch.full_like(values, 0.3),
        "tiny": values * 1e-38,
        "with nan": torch.where(values < 0.2, NAN, values),
        "mostly nan": torch.where(values < 0.9, NAN, values),
        "ends": values.round(),
    }[kind]
    for share in (0.1, 0.5, 0.9, 1.0):
        count = (sizes * share).ceil().long()
        expected, kept = kernels.select(values, ptr, count, backend="fused")
        perm, kept_ptr = select_graphs(values, ptr, count, fittest_first=False)
        assert torch.equal(kept_ptr, kept)
        assert torch.equal(perm, expected.sort().values)
