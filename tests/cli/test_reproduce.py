"""`asapool reproduce`: tables by one command, and the same bytes whatever happens on the way, for real."""

import io
import json
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from asapool.cli._live import Watch
from asapool.errors import ConfigError, DataError
from asapool.experiments.execute import execute
from asapool.experiments.store import Store
from tests.cli.commands import begin, call, fill, finish, wait_for
from tests.experiments.small import Here, graphs_of, plan_of

PLAN = """
[plan]
name = "mine"
title = "Two widths"
seeds = 2
folds = 3
[model]
method = "mlp"
[train]
epochs = 120
lr = 0.0003
[[data]]
name = "cycles"
source = "synthetic:cycles?graphs=40&nodes=6"
[[row]]
name = "narrow"
model = { hidden = 4 }
[[row]]
name = "wide"
model = { hidden = 8 }
"""
FILES = ("mine.md", "mine.csv", "mine.json", "mine.plan.json")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "mine.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="module")
def undisturbed(plan, tmp_path_factory):
    """The bytes of the tables of an experiment that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    output = call("reproduce", "--plan", plan, "--out", folder, "--json")
    assert output.exit_code == 0, output.stderr
    assert json.loads(output.stdout)["tables"]["mine"] == json.loads((folder / "mine.json").read_text())
    assert output.stderr.count(": test ") == 12  # a plain line per training where nobody is looking
    assert "12/12  mine, wide, cycles, seed 85688, fold 2: test" in output.stderr
    assert "; left: " in output.stderr
    assert (folder / "report.html").is_file()
    return {name: (folder / name).read_bytes() for name in FILES}


def tables(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def lines(folder):
    path = folder / "runs.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def worker_of(process):
    """The process that trains for a command."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if parent == str(process.pid) and b"spawn_main" in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None


@pytest.mark.slow
def test_killed_worker_ctrl_c_killed_driver_and_a_torn_line_end_in_the_same_bytes(plan, tmp_path, undisturbed):
    args = ("reproduce", "--plan", plan, "--out", tmp_path, "--no-report")
    process = begin(*args, start_new_session=True)
    wait_for(lambda: lines(tmp_path) >= 1, process, 120)
    os.kill(worker_of(process), signal.SIGKILL)
    wait_for(lambda: b'"failure"' in (tmp_path / "runs.jsonl").read_bytes(), process, 120)
    at = lines(tmp_path)
    wait_for(lambda: lines(tmp_path) > at, process, 120)

    process.send_signal(signal.SIGSTOP)  # so that it is not done before the second one has started
    refused, _, why = finish(begin(*args))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the worker gets it too
    process.send_signal(signal.SIGCONT)
    assert refused == 1
    assert f"process {process.pid} is working in this folder" in why
    code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert "failed in attempt 1: the process was ended by signal 9 (SIGKILL)" in err
    assert f"To resume: run the same command again; finished training runs are in {tmp_path}" in err
    assert "Traceback" not in err
    at = lines(tmp_path)
    assert 3 <= at < 13
    assert b"training runs of the cell" in (tmp_path / "mine.md").read_bytes()  # the table so far

    process = begin(*args)
    wait_for(lambda: lines(tmp_path) > at, process, 120)
    process.kill()
    process.communicate()
    with open(tmp_path / "runs.jsonl", "ab") as file:
        file.write(b'{"version":1,"key":"0123')  # as a kill in the middle of a write leaves it

    output = call(*args)
    assert output.exit_code == 0, output.stderr
    assert "of 12 training runs were already finished" in output.stderr
    assert "Two widths" in output.stdout
    assert tables(tmp_path) == undisturbed
    records = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    finished = [record["key"] for record in records if "failure" not in record]
    assert len(finished) == len(set(finished)) == 12  # every Run recorded once
    assert [r["attempts"] for r in records if "failure" in r] == [1]
    before = (tmp_path / "runs.jsonl").read_bytes()
    assert call(*args).exit_code == 0
    assert (tmp_path / "runs.jsonl").read_bytes() == before  # nothing left to do


@pytest.mark.slow
def test_a_full_disk_is_a_sentence_and_it_goes_on_when_there_is_room(plan, mount, undisturbed):
    args = ("reproduce", "--plan", plan, "--out", mount / "out", "--no-report")
    process = begin(*args)
    wait_for(lambda: lines(mount / "out") >= 1, process, 120)
    fill(mount)
    code, out, err = finish(process)
    assert (code, out) == (1, "")
    assert "cannot be written (No space left on device)" in err
    assert "Traceback" not in err
    content = (mount / "out" / "runs.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert all(json.loads(line)["key"] for line in content.splitlines())
    (mount / "filler").unlink()
    assert call(*args).exit_code == 0
    assert tables(mount / "out") == undisturbed


def test_all_of_it_on_tiny_data(tmp_path):
    output = call("reproduce", "all", "--smoke", "--engine", "inline", "--out", tmp_path, "--json")
    assert output.exit_code == 0, output.stderr
    made = json.loads(output.stdout)["tables"]
    assert list(made) == [
        "table1", "table2", "table3", "table-aggregation", "table-attention", "table-fitness", "table-edges",
        "figure-ratio", "table-hyper",
    ]  # fmt: skip
    for name in made:
        for kind in ("md", "csv", "json"):
            assert (tmp_path / f"{name}.{kind}").stat().st_size > 0
    assert made["table2"]["columns"][0] == "DD (synthetic)"  # nobody may take it for the data set
    assert all(cell["folds"] == 3 and cell["verdict"] is None for cell in made["table2"]["cells"])
    assert any(cell["chosen"] for cell in made["table-hyper"]["cells"])
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "figure-ratio.svg").is_file()


@pytest.mark.parametrize(("seeds", "note"), [(20, ""), (21, "beyond them: 100020\n"), (23, "100020, …, 100022\n")])
def test_seeds_beyond_those_of_the_authors_are_named(seeds, note, tmp_path, monkeypatch):
    monkeypatch.setattr("asapool.experiments.reproducing.reproduce", lambda *_, **__: ([], []))  # without training
    args = ("table-edges", "--smoke", "--datasets", "NCI1", "--seeds", seeds, "--out", tmp_path, "--no-report")
    output = call("reproduce", *args)
    assert note in output.stderr
    assert ("--seeds:" in output.stderr) == bool(note)


def test_failed_trainings_are_reported_with_their_reason(tmp_path):
    (tmp_path / "p.toml").write_text(PLAN.replace("epochs = 120\nlr = 0.0003", "epochs = 1\nlr = 1e30"))
    args = ("reproduce", "--plan", tmp_path / "p.toml", "--out", tmp_path / "o", "--methods", "wide", "--seeds", 1)
    output = call(*args, "--no-report")
    assert output.exit_code == 1
    assert output.stderr.count("asapool: cycles, mlp, seed 8971, fold 1: cycles: the loss was not a number") == 1
    assert "3 of 3 training runs failed; the same command tries them again" in output.stderr
    assert {record.attempts for record in Store.read(tmp_path / "o").values()} == {2}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "reproduce takes one of table1, table2"), (("table2", "--plan", "x.toml"), "reproduce takes one of"),
        (("table9",), "there is no .table9. to"), (("table2", "--engine", "slurm"), "--engine must be one of"),
        (("table2", "--address", "x"), "Add --engine ray"), (("table2", "--datasets", "MUTAG"), "no data set 'MUTAG'"),
        (("table2", "--methods", "gat"), "no method 'gat'"), (("table2", "--smoke", "--semantics", "x"), "semantics"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_a_sentence(args, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=says):
        call("reproduce", *args)
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_that_cannot_be_found_is_reported_before_anything_is_trained(tmp_path, monkeypatch):
    from asapool.data import download

    def no_network(name, folder):
        raise OSError("no network")

    monkeypatch.setattr(download, "_download", no_network)
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ASAPOOL_DATA", raising=False)
    with pytest.raises(DataError, match=r"DD: not in .* could not be downloaded .*--data-root"):
        call("reproduce", "table2", "--data-root", tmp_path, "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_tables_without_training_need_no_store_of_trainings(tmp_path, shared_datasets):
    output = call("reproduce", "table3", "--datasets", "PROTEINS", "--data-root", shared_datasets, "--out", tmp_path)
    assert output.exit_code == 0
    assert "1113" in output.stdout
    assert (tmp_path / "table3.csv").is_file()
    assert lines(tmp_path) == 0


def test_the_live_table_fills_in_and_says_how_long(tmp_path):
    graphs, plan = graphs_of("a", "b"), plan_of(rows=("mlp", "none"), columns=("a", "b"), seeds=(1,))
    shown = io.StringIO()
    watch = Watch([plan], graphs)
    watch.console = Console(file=shown, force_terminal=True, width=120, height=40)
    bad = plan.runs(graphs)[1]
    engine = Here(lambda run, attempt: "killed" if run == bad and attempt == 1 else None)

    def drawn():
        pages = Console(file=io.StringIO(), width=120, height=40)
        pages.print(watch.draw())
        return pages.file.getvalue()

    seen = []
    with Store.open(tmp_path) as store, watch:
        watch.start(store)
        assert "– 0/3" in drawn().replace("  ", " ")
        assert "left: unknown" in drawn()
        execute(plan, graphs, store, engine, lambda r: (watch.record(r), seen.append(drawn())), watch.progress)
    assert "1/12 training runs" in seen[0]
    assert "left: unknown" not in seen[3]
    assert "12/12 training runs" in seen[-1]
    assert "left: 0 s" in seen[-1]
    records = list(Store.read(tmp_path).values())
    mine = [r.test["accuracy"] for r in records if (r.run.data, r.run.model.method) == ("a", "none")]
    assert f"{100 * sum(mine) / 3:.2f} 3/3" in seen[-1].replace("  ", " ")
    assert "failed in attempt 1: killed" in shown.getvalue()
