"""Denormals are flushed to zero inside flush_denormals, in the calling thread and the loops' threads alike."""

import textwrap
from threading import Event, Thread

import pytest
import torch

from asapool import kernels
from asapool.kernels.threads import flush_denormals, flushes_denormals
from tests.children import run_python

SMALLEST = torch.finfo(torch.float32).tiny


@pytest.fixture(autouse=True)
def _as_found():
    before = flushes_denormals()
    yield
    torch.set_flush_denormal(before)


def test_denormals_are_flushed_only_inside():
    torch.set_flush_denormal(False)
    with flush_denormals():
        assert flushes_denormals()
        with flush_denormals():
            assert flushes_denormals()
        assert flushes_denormals()
    assert not flushes_denormals()
    torch.set_flush_denormal(True)
    with flush_denormals():
        pass
    assert flushes_denormals()


def test_an_error_inside_restores_the_setting():
    torch.set_flush_denormal(False)
    with pytest.raises(ValueError, match="inside"), flush_denormals():
        raise ValueError("inside")
    assert not flushes_denormals()


@pytest.mark.parametrize("threads", [1, 3])
def test_worker_threads_behave_as_their_caller(threads, loops_shared):
    """Threads that already exist must follow too, or results would depend on the number of threads."""
    torch.set_flush_denormal(False)
    torch.set_num_threads(threads)
    try:
        h, bias = torch.full((60_000, 32), SMALLEST / 2), torch.full((32,), SMALLEST / 8)
        before = kernels.activate(h, bias)
        with flush_denormals():
            inside = kernels.activate(h, bias)
        after = kernels.activate(h, bias)
    finally:
        torch.set_num_threads(1)
    assert bool((before > 0).all())
    assert bool((inside == 0).all())
    assert bool((after > 0).all())


def test_other_threads_are_not_affected(loops_shared):
    """Two threads, one of them inside: each gets worker threads with its own setting."""
    torch.set_flush_denormal(False)
    h, bias = torch.full((60_000, 32), SMALLEST / 2), torch.full((32,), SMALLEST / 8)
    inside, seen = Event(), []

    def outside():
        inside.wait(60)
        seen.extend(bool((kernels.activate(h, bias) > 0).all()) for _ in range(5))

    torch.set_num_threads(2)
    other = Thread(target=outside)
    other.start()
    try:
        with flush_denormals():
            kernels.activate(h, bias)
            inside.set()
            flushed = [bool((kernels.activate(h, bias) == 0).all()) for _ in range(5)]
            other.join(60)
    finally:
        torch.set_num_threads(1)
    assert flushed == [True] * 5
    assert seen == [True] * 5


def test_other_defaults_of_torch_do_not_matter():
    torch.set_flush_denormal(True)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            assert flushes_denormals()
    finally:
        torch.set_default_dtype(torch.float32)


LOADER = """
    import torch
    from torch.utils.data import DataLoader
    from asapool.nn import ASAPooling

    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    pool = ASAPooling(512).eval()

    class Pooled(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        @torch.no_grad()
        def __getitem__(self, i):
            return pool(torch.full((4, 512), float(i + 1)), path).x

    torch.set_num_threads(2)
    torch.mm(torch.randn(600, 600), torch.randn(600, 600))  # torch's threads exist before the workers are forked
    expected = torch.stack([Pooled()[i] for i in range(4)])
    got = torch.cat(list(DataLoader(Pooled(), num_workers=2, multiprocessing_context="fork")))
    print(torch.allclose(got, expected))
"""


def test_a_forked_dataloader_worker_pools_while_the_parent_has_two_threads():
    """DataLoader gives its workers one thread each, so they never wait for threads that a fork does not copy."""
    done = run_python(textwrap.dedent(LOADER))
    assert done.stdout.strip() == "True", done.stderr
