"""Carrying out a plan: nothing twice, a failure once more, and a stop at any point changes no number."""

import pytest

from asapool.errors import TrainingError
from asapool.experiments.execute import execute
from asapool.experiments.store import FILE, Store
from tests.experiments.small import Here, graphs_of, plan_of, timeless

GRAPHS = graphs_of()
PLAN = plan_of(rows=("mlp",))


def test_what_is_finished_is_skipped_and_progress_is_reported(tmp_path):
    seen, reported = [], []
    with Store.open(tmp_path) as store:
        first = execute(PLAN, GRAPHS, store, Here(), seen.append, lambda *words: reported.append(words))
        assert [r.run for r in first] == [r.run for r in seen] == PLAN.runs(GRAPHS)
        assert seen[0].history is not None  # whoever listens gets all of it; the memory keeps the scores
        assert [words[:3] for words in reported[:3]] == [(PLAN.runs(GRAPHS)[0], k, 2) for k in range(3)]
        again = Here()
        assert execute(PLAN, GRAPHS, store, again) == first
        assert again.tried == []
    assert [timeless(r) for r in Store.read(tmp_path).values()] == [
        timeless(r) for r in (type(s).from_line(s.to_line()) for s in seen)
    ]


def test_plans_share_their_runs(tmp_path):
    both = plan_of(rows=("mlp", "none"), seeds=(8971,))
    engine = Here()
    with Store.open(tmp_path) as store:
        records = execute([PLAN, both], GRAPHS, store, engine)
    assert len(engine.tried) == len(set(engine.tried)) == len(records) == 6 + 3


def test_a_failure_is_tried_once_more_at_the_end(tmp_path):
    bad = PLAN.runs(GRAPHS)[1]
    engine = Here(lambda run, attempt: "killed" if run == bad and attempt == 1 else None)
    with Store.open(tmp_path) as store:
        records = execute(PLAN, GRAPHS, store, engine)
    assert engine.tried == [*(r.key for r in PLAN.runs(GRAPHS)), bad.key]
    assert [r.attempts for r in records] == [1, 2, 1, 1, 1, 1]
    lines = (tmp_path / FILE).read_text().splitlines()
    assert len(lines) == 7
    assert '"failure":"killed"' in lines[1]


def test_what_fails_twice_keeps_its_reason_and_is_tried_by_the_next_call(tmp_path):
    bad = PLAN.runs(GRAPHS)[1]
    with Store.open(tmp_path) as store:
        records = execute(PLAN, GRAPHS, store, Here(lambda run, attempt: "killed" if run == bad else None))
    assert [(r.failure, r.attempts) for r in records if not r.finished] == [("killed", 2)]
    engine = Here()
    with Store.open(tmp_path) as store:
        records = execute(PLAN, GRAPHS, store, engine)
    assert engine.tried == [bad.key]
    assert all(r.finished for r in records)
    assert records[1].attempts == 3


def test_whatever_stops_it_stops_the_workers(tmp_path):
    engine = Here()

    def full(record):
        raise TrainingError("the disk is full")

    with Store.open(tmp_path) as store:
        with pytest.raises(TrainingError, match="the disk is full") as stopped:
            execute(PLAN, GRAPHS, store, engine, full)
        assert engine.closed  # although the error, and with it the loop, is still held
        assert stopped.value
        assert len(store.records()) == 1
