"""⌈kN⌉ is exact, and ties go to the lower node."""

from decimal import ROUND_CEILING, Decimal

import numpy as np
import pytest
import torch

from asapool import kernels
from asapool.kernels.ratio import kept_count
from asapool.nn import ASAPooling
from tests.graphs import PATH4


def test_every_ratio_with_up_to_four_decimals_and_every_size_up_to_1000():
    nodes = torch.arange(1, 1001)
    for t in range(1, 10_001):
        expected = -torch.div(-nodes * t, 10_000, rounding_mode="floor")  # whole numbers only
        assert torch.equal(kept_count(nodes, t / 10_000), expected), t


def test_the_rule_itself_on_cases_floating_point_gets_wrong():
    for ratio, n in [("0.55", 100), ("0.07", 100), ("0.29", 100), ("0.1", 30), ("0.3", 10), ("0.7", 10)]:
        exact = int((Decimal(ratio) * n).to_integral_value(ROUND_CEILING))
        assert kept_count(torch.tensor([n]), float(ratio)).item() == exact
    assert kept_count(torch.tensor([10]), 0.1 + 0.2).item() == 3  # 0.30000000000000004 means 0.3


def test_fractions_without_a_decimal_representation():
    nodes = torch.arange(1, 1001)
    for below in range(1, 60):
        for above in range(1, below + 1):
            expected = -torch.div(-nodes * above, below, rounding_mode="floor")
            assert torch.equal(kept_count(nodes, above / below), expected), (above, below)


def test_arrays_and_tensors_give_the_same_counts():
    nodes = torch.arange(0, 200)
    for ratio in (1 - 1 / 3, 0.55, 1.0, 7, 1e-9):
        assert kept_count(nodes.numpy(), ratio).tolist() == kept_count(nodes, ratio).tolist()


def test_numbers_of_numpy_are_numbers():
    assert ASAPooling(np.int64(2), np.float32(0.1)).ratio == pytest.approx(0.1)
    assert kept_count(torch.tensor([10]), ASAPooling(2, np.float32(0.1)).ratio).tolist() == [1]
    assert ASAPooling(2, np.int64(3)).ratio == 3


@pytest.mark.parametrize(("ratio", "kept"), [(1.0, 4), (1, 1), (3, 3), (9, 4), (0.001, 1)])
def test_all_one_some(ratio, kept, backend):
    out = ASAPooling(2, ratio, backend=backend)(torch.randn(4, 2), PATH4)
    assert len(out.perm) == kept


def test_ties_go_to_the_lower_node(backend):
    fitness = torch.tensor([0.5, 0.9, 0.5, 0.5, 0.9, 0.1, 0.1])
    perm, ptr = kernels.select(fitness, torch.tensor([0, 5, 5, 7]), torch.tensor([4, 0, 1]), backend=backend)
    assert perm.tolist() == [1, 4, 0, 2, 5]
    assert ptr.tolist() == [0, 4, 4, 5]
