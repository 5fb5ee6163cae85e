"""Local processes: numbers are those of this process, and one that dies costs one Run; test_crossval.py has two."""

import os
import signal
from dataclasses import replace
from pathlib import Path

from asapool.experiments.engines import LocalEngine
from asapool.experiments.fold import run
from tests.experiments.small import graphs_of, plan_of, timeless

GRAPHS = graphs_of()["cycles"]
RUNS = plan_of(rows=("mlp", "none"), seeds=(8971,)).runs({"cycles": GRAPHS})


def workers():
    """Processes that this one has started to train in, and that still live."""
    result = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if parent == str(os.getpid()) and state != "Z" and b"spawn_main" in (folder / "cmdline").read_bytes():
                result.add(int(folder.name))
        except OSError:
            continue
    return result


def test_numbers_epochs_a_killed_worker_an_error_and_an_early_end():
    """All in one, because every worker takes seconds to start."""
    before, reported, killed, records = workers(), [], [], []
    lost = replace(RUNS[0], fingerprint="of other graphs")
    shared = {GRAPHS.fingerprint: GRAPHS, lost.fingerprint: GRAPHS}

    def progress(run, epoch, epochs, score):
        reported.append((run, epoch, epochs))
        if run == RUNS[0] and not killed:
            killed.extend(workers() - before)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    work = LocalEngine(1).work([lost, *RUNS], shared, progress)
    for record in work:
        records.append(record)
        if len(records) == 6:
            break
    assert len(workers() - before) == 1
    work.close()
    assert workers() == before
    assert len(killed) == 1  # one job has a process of its own too
    assert [record.run for record in records] == [lost, *RUNS[:5]]
    assert "Give it the graphs it was planned for" in records[0].failure  # an error is a record with its sentence
    assert "signal 9 (SIGKILL): the machine may be out of memory" in records[1].failure
    assert records[1].machine["torch"]
    for record in records[2:]:
        assert timeless(record) == timeless(run(GRAPHS, record.run))
        assert (record.run, 0, 2) in reported
