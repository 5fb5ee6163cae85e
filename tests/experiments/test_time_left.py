"""The time left: there is an estimate long before the first training ends, and it is right where epochs are alike."""

from dataclasses import replace

import pytest

from asapool.experiments.record import RunRecord, failed
from asapool.experiments.run import Run
from asapool.experiments.time_left import TimeLeft
from asapool.models import ModelConfig
from asapool.training import TrainConfig

SMALL = [
    Run(data="a", fingerprint="a", model=ModelConfig(), train=TrainConfig(epochs=100), seed=1, fold=f) for f in range(4)
]
LARGE = [replace(run, data="b", fingerprint="b") for run in SMALL]


@pytest.fixture
def clock():
    class Clock(TimeLeft):
        time = 0.0

    made = Clock([*SMALL, *LARGE], {"a": 10, "b": 30}, now=lambda: made.time)
    return made


def done(run, seconds):
    rows = [{"epoch": k, "seconds": seconds} for k in range(1, 101)]
    rows[0]["seconds"] = 60.0  # compiling
    return RunRecord(run=run, machine={}, history=rows, epochs=100, test={}, validation={})


def test_a_few_epochs_of_the_first_training_are_enough(clock):
    assert clock.seconds() is None
    clock.progress(SMALL[0], 0, 100)
    clock.time = 30.0  # the first epoch compiles: it is no measure
    clock.progress(SMALL[0], 1, 100)
    assert clock.seconds() is None
    clock.time = 32.0
    clock.progress(SMALL[0], 5, 100)
    # half a second per epoch: 95 + 300 of the small; the large one has three times the nodes
    assert clock.seconds() == pytest.approx(0.5 * (95 + 300) + 1.5 * 400)


def test_trainings_side_by_side_share_the_time(clock):
    for run in SMALL[:2]:
        clock.progress(run, 1, 100)
    clock.time = 10.0
    for run in SMALL[:2]:
        clock.progress(run, 11, 100)
    assert clock.seconds() == pytest.approx((1.0 * (89 + 89 + 200) + 3.0 * 400) / 2)


def test_finished_ones_are_the_better_measure_and_failed_ones_come_again(clock):
    clock.progress(SMALL[0], 0, 100)
    clock.record(done(SMALL[0], 0.2))
    clock.record(done(LARGE[0], 1.0))
    assert clock.seconds() == pytest.approx(0.2 * 300 + 1.0 * 300)
    clock.record(failed(SMALL[1], "killed", {}))
    assert clock.seconds() == pytest.approx(0.2 * 300 + 1.0 * 300)
    for run in (*SMALL[1:], *LARGE[1:]):
        clock.record(done(run, 1.0))
    assert clock.seconds() == 0.0


def test_a_method_without_epochs_takes_its_whole_time(clock):
    row = {"epoch": 1, "seconds": 4.0}
    clock.record(RunRecord(run=SMALL[0], machine={}, history=[row], epochs=1, test={}, validation={}))
    assert clock.seconds() == pytest.approx(4.0 * 3 + 12.0 * 4)  # the large ones have three times the nodes
