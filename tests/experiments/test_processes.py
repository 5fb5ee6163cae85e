"""Many tasks in a few processes: what dies costs one task, and workers end with their parent."""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from asapool.errors import ConfigError
from asapool.experiments.processes import run_tasks
from tests.experiments import workers


def test_every_task_is_done_once_in_any_number_of_processes():
    for jobs in (1, 2):
        done = list(run_tasks(range(7), workers.square, 10, jobs))
        assert sorted(outcome.result for outcome in done) == [10 * k * k for k in range(7)]
        assert sorted(outcome.task for outcome in done) == list(range(7))


def test_a_worker_that_dies_costs_its_own_task_only():
    tasks = ["a", "kill", "b", "exit", "c", "raise", "d"]
    done = {outcome.task: outcome for outcome in run_tasks(tasks, workers.troubled, None, 2)}
    assert "signal 9 (SIGKILL)" in done["kill"].failure
    assert "out of memory" in done["kill"].failure
    assert done["exit"].failure == "the process ended with code 7 before the task was done"
    assert done["raise"].failure.startswith("ZeroDivisionError: by hand (")
    assert "workers.py, line" in done["raise"].failure
    assert all(done[task].failure is None and done[task].result != os.getpid() for task in "abcd")


def test_workers_have_one_torch_thread():
    assert [outcome.result for outcome in run_tasks([0], workers.threads, None, fresh=True)] == [1]


def test_leaving_the_loop_ends_the_workers():
    running = run_tasks(["a", "b"], workers.troubled, None, 2)
    pid = next(running).result
    running.close()
    assert not _alive(pid)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = (
        "from asapool.experiments.processes import run_tasks\nfrom tests.experiments import workers\n"
        f"if __name__ == '__main__':\n    list(run_tasks(['a', 'b'], workers.note_and_wait, {str(tmp_path)!r}, 2))\n"
    )
    (tmp_path / "parent.py").write_text(script)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], env={**os.environ, "PYTHONPATH": os.getcwd()})
    _wait_for(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in "ab"))
    children = [int((tmp_path / name).read_text()) for name in "ab"]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _wait_for(lambda: not any(map(_alive, children)))
    assert len(set(children)) == 2


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.4])
def test_a_worker_that_dies_while_it_starts_costs_its_task_and_does_not_hang(delay):
    """What is shared is larger than a pipe holds, so the parent is still sending it when the worker dies."""
    before, killed = set(mp.active_children()), []

    def kill():
        _wait_for(lambda: set(mp.active_children()) - before)
        time.sleep(delay)
        for child in set(mp.active_children()) - before:
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)
            return

    killer = threading.Thread(target=kill)
    killer.start()
    tasks = range(4)
    done = list(run_tasks(tasks, workers.size, b"x" * 2**22, 2))
    killer.join()
    assert len(killed) == 1
    assert sorted(outcome.task for outcome in done) == list(tasks)
    failures = [outcome.failure for outcome in done if outcome.failure is not None]
    assert len(failures) <= 1
    assert all("signal 9 (SIGKILL)" in failure for failure in failures)
    assert {outcome.result for outcome in done if outcome.failure is None} == {2**22}


def test_no_jobs_are_refused():
    with pytest.raises(ConfigError, match="jobs must be at least 1"):
        list(run_tasks([1], workers.square, 1, 0))


def _wait_for(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
