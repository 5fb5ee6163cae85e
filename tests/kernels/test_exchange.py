"""Exchanges through shared memory: every process gets the numbers of all, and a lost one is noticed."""

import os
import signal

import pytest
import torch

from asapool.kernels import exchange as module
from asapool.kernels.exchange import CAPACITY, Exchange, ProcessLostError, memory_file
from tests.children import CONTEXT

SIZE, ROUNDS = 3, 200


@pytest.fixture
def file():
    path = memory_file(SIZE)
    if path is None:
        pytest.skip("shared memory is used on x86-64 processors with Linux only")
    yield path
    path.unlink(missing_ok=True)


def numbers(rank, k):
    """What a process sends in round k: of different lengths, so that areas are reused with other contents."""
    return torch.arange(1 + k % 7, dtype=torch.float64) + 100 * rank + k


def take_part(file, rank, pipe):
    torch.set_num_threads(1)
    own = Exchange(file, rank, SIZE, lambda: True)
    wrong = 0
    for k in range(ROUNDS):
        everyone = torch.stack([numbers(r, k) for r in range(SIZE)])
        wrong += not torch.equal(own.gather(numbers(rank, k)), everyone)
        wrong += not torch.equal(own.sum_(numbers(rank, k)), everyone.sum(0))
    large = torch.full((CAPACITY // 4 * 2 + 5,), float(rank + 1))  # three pieces
    wrong += own.sum_(large.clone()).unique().tolist() != [6.0]
    wrong += own.gather(large)[:, -1].tolist() != [1.0, 2.0, 3.0]
    wrong += own.gather(torch.zeros(0, 4)).shape != (SIZE, 0, 4)
    pipe.send(wrong)


def test_every_process_gets_the_numbers_of_all(file):
    context = CONTEXT
    pipes = [context.Pipe() for _ in range(SIZE)]
    started = [context.Process(target=take_part, args=(file, r, pipes[r][1])) for r in range(SIZE)]
    for process in started:
        process.start()
    assert [mine.recv() if mine.poll(120) else "no answer" for mine, _ in pipes] == [0] * SIZE
    for process in started:
        process.join()


def stop_at_once(file):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_lost_process_ends_the_wait(file):
    other = CONTEXT.Process(target=stop_at_once, args=(file,))
    other.start()
    with pytest.raises(ProcessLostError, match="another process has ended"):
        Exchange(file, 0, SIZE, other.is_alive).gather(torch.ones(2))
    other.join()


def test_other_processors_and_full_memory_use_gloo(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "posix_fallocate", full)
    assert memory_file(2) is None
    monkeypatch.setattr(module.platform, "machine", lambda: "arm64")
    assert memory_file(2) is None
