"""Dropout masks: the right fraction, independent between positions and seeds, the same on every backend."""

import pytest
import torch

from asapool import kernels
from asapool.kernels import fused, reference
from asapool.kernels.reference.dropout import seed_from

PLACES = 200_000


def test_the_mixed_numbers_are_those_of_splitmix64():
    """The first three numbers of the published generator for the seed 1234567, by their top 24 bits."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for p in (0.17, 0.18, 0.35, 0.36, 0.53, 0.54):
        kept = reference.dropout_mask(torch.tensor([1234567]), 3, p, torch.zeros(1)) != 0
        assert kept.tolist() == [number / 2**64 >= p for number in published]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", [0, 1, 2**40 + 7, 2**63 - 2])
def test_both_backends_and_any_threads_give_the_same_factors(seed, dtype, loops_shared):
    like, result = torch.zeros(1, dtype=dtype), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            result.append(fused.dropout_mask(torch.tensor([seed]), 3 * PLACES, 0.3, like))
        finally:
            torch.set_num_threads(1)
    result.append(reference.dropout_mask(torch.tensor([seed]), 3 * PLACES, 0.3, like))
    assert all(mask.dtype == dtype and torch.equal(mask, result[0]) for mask in result)


@pytest.mark.parametrize("position", [0, 1, 5, 2**40])
def test_a_mask_can_begin_at_any_position(position):
    seed, like = torch.tensor([2**62 + 11]), torch.zeros(1)
    later = reference.dropout_mask(seed_from(seed, position), 8, 0.4, like)
    if position < 100:
        assert torch.equal(later, reference.dropout_mask(seed, position + 8, 0.4, like)[position:])
    assert torch.equal(later, fused.dropout_mask(seed_from(seed, position), 8, 0.4, like))
    onwards = reference.dropout_mask(seed_from(seed_from(seed, position), 3), 5, 0.4, like)
    assert torch.equal(later[3:], onwards)


def test_dropout_multiplies_by_the_mask():
    x = torch.arange(12.0).view(3, 4)
    torch.manual_seed(3)
    mask = kernels.dropout_mask(12, 0.5, x)
    torch.manual_seed(3)
    assert torch.equal(kernels.dropout(x, 0.5), x * mask.view(3, 4))


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
def test_the_dropped_fraction_is_p_and_the_mean_is_one(p, backend):
    torch.manual_seed(4)
    mask = kernels.dropout_mask(PLACES, p, torch.zeros(1), backend=backend)
    off = 5 * (p * (1 - p) / PLACES) ** 0.5
    assert abs((mask == 0).double().mean().item() - p) < off
    torch.testing.assert_close(mask[mask != 0], torch.full_like(mask[mask != 0], 1 / (1 - p)))


def test_positions_and_seeds_are_independent():
    torch.manual_seed(5)
    one, other = ((kernels.dropout_mask(PLACES, 0.5, torch.zeros(1)) == 0).double() for _ in range(2))
    pairs = [(one[:-d], one[d:]) for d in (1, 2, 3, 7, 64, 128)] + [(one, other)]
    pairs += [tuple((reference.dropout_mask(torch.tensor([s]), PLACES, 0.5, one) == 0).double() for s in (9, 10))]
    for a, b in pairs:
        assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1].item()) < 5 / PLACES**0.5


def test_the_mask_depends_on_torchs_seed():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(kernels.dropout_mask(1000, 0.5, torch.zeros(1)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
