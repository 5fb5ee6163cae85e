"""Every step exists in both backends, under the same name, with the same arguments, in files of the same name."""

import inspect

import pytest

from asapool import kernels
from asapool.kernels import fused, reference


@pytest.mark.parametrize("name", reference.__all__)
def test_reference_and_fused_mirror_each_other(name):
    one, other = getattr(reference, name), getattr(fused, name)
    assert one.__module__.rpartition(".")[2] == other.__module__.rpartition(".")[2]
    assert inspect.signature(one) == inspect.signature(other)


def test_the_dispatcher_offers_every_step():
    assert set(reference.__all__) <= set(kernels.__all__)
    layers = {
        "PoolSpec",
        "convolve",
        "form",
        "linear",
        "Extras",
        "RunningStatistics",
        "batch_norm",
    }  # whole ones, eager only
    assert set(fused.__all__) - set(reference.__all__) == layers
