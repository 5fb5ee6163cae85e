"""The coverage of conformal sets and intervals on the page of a run, and what a page says of an ensemble."""

import json
import re
import shutil

import numpy as np
import pytest

from asapool.data import load
from asapool.data.targets import Target
from asapool.experiments.engines import InlineEngine
from asapool.experiments.ensembles import train_ensemble
from asapool.reports import write_report
from asapool.reports.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from asapool.reports.coverage import coverage_panel, half_widths, known_levels
from asapool.reports.curves import Panel, task_panels
from asapool.training import RunSettings, resolve_reading, run
from asapool.training.tasks import task_of

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "c1ccncc1", "CCS"] * 6
TITLE = "Coverage of conformal"
TWO = {
    "validation": 12,
    "levels": [{"coverage": 0.5, "covered": 0.625, "size": 1.5}, {"coverage": 0.9, "covered": 0.875, "size": 2.0}],
}
VALUE = Target(kind="regression", names=("a",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with measured values and one with yes/no tasks, with too few validation graphs for a coverage of 95 %."""
    path = tmp_path_factory.mktemp("coverage")
    rows = [f"{s},{len(s) + 0.1 * k:.2f},{k % 2},{int(k % 3 == 0)},{10 * len(s) - k}" for k, s in enumerate(SMILES)]
    (path / "all.csv").write_text("smiles,logS,tox,bind,mass\n" + "\n".join(rows) + "\n")
    for name, target in (("values", ["logS"]), ("labels", ["tox", "bind"]), ("both", ["logS", "mass"])):
        tables = {"data": {"source": str(path / "all.csv"), "target": target}, "train": {"epochs": 2, "threads": 1}}
        tables |= {"model": {"method": "asap", "hidden": 8, "levels": 1}, "split": {"val": 0.2, "test": 0.2}}
        chosen, reading = resolve_reading(tables)
        run.start(chosen, reading.graphs, path / name)
    return path


def numbers_of(folder):
    return json.loads((folder / "metrics.json").read_text())["conformal"]


def test_a_page_of_values_has_the_coverage_and_the_interval_of_its_run(folder):
    conformal, page = numbers_of(folder / "values"), write_report(folder / "values").read_text()
    assert f"<h2>{TITLE} intervals</h2>" in page
    assert f"calibrated on {conformal['validation']} validation graphs." in page
    known = [level for level in conformal["levels"] if level["size"] is not None]
    assert [level["coverage"] for level in known] == [0.5, 0.6, 0.7, 0.8, 0.9]
    for level in known:
        row = f"{100 * level['coverage']:.0f} %</th><td>{100 * level['covered']:.1f} %</td><td>{level['size']:.3g}</td>"
        assert row in page
    assert '<th scope="row">95 %</th>' not in page
    assert f"at 90 % coverage, prediction ± {known[-1]['size'] / 2:.3g}." in page
    assert "90 % interval</li>" in page


def test_every_value_of_several_has_its_own_band(folder, tmp_path):
    conformal, page = numbers_of(folder / "both"), write_report(folder / "both", tmp_path / "both.html").read_text()
    level = next(level for level in conformal["levels"] if level["coverage"] == 0.9)
    assert level["size"] == pytest.approx(np.mean(list(level["sizes"].values())))
    assert level["sizes"]["mass"] > 5 * level["sizes"]["logS"]  # its numbers are ten times as large
    for width in level["sizes"].values():
        assert f"at 90 % coverage, prediction ± {width / 2:.3g}." in page
    metrics = json.loads((folder / "both" / "metrics.json").read_text())
    for name, test in metrics["trivial"]["tasks"].items():
        low, high = metrics["test_intervals_of_tasks"][name]["rmse"]
        base, score = metrics["trivial"]["scores_of_tasks"][name]["rmse"], metrics["test"]["tasks"][name]["rmse"]
        p = "&lt; 0.001" if test["p_error"] < 0.001 else f"{test['p_error']:.2g}"
        cells = f"{score:.3f}</td><td>{low:.3f} to {high:.3f}</td><td>{base:.3f}</td><td>{p}</td>"
        assert f'<th scope="row">{name}</th><td>12</td><td>{cells}' in page
    assert "<dt>baseline</dt><dd>RMSE of the trivial baseline.</dd>" in page
    low, high = metrics["test_intervals"]["rmse"]
    assert f"<td>{low:.3f} to {high:.3f}</td><td>{metrics['trivial']['scores']['rmse']:.3f}</td><td>–</td>" in page


def test_a_run_folder_without_the_new_keys_has_a_page(folder, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(folder / "both", copy)
    metrics = json.loads((copy / "metrics.json").read_text())
    del metrics["test_intervals_of_tasks"], metrics["trivial"]["scores_of_tasks"]
    for level in metrics["conformal"]["levels"]:
        del level["sizes"]
    (copy / "metrics.json").write_text(json.dumps(metrics))
    page = write_report(copy).read_text()
    assert "Scores of every task on the test graphs</caption>" in page
    assert '<th scope="col">95 % interval</th>' not in page
    assert "90 % interval</li>" not in page
    metrics["trivial"] = None
    (copy / "metrics.json").write_text(json.dumps(metrics))
    assert "Scores of every task" in write_report(copy).read_text()


def test_a_page_says_by_which_p_value_the_model_is_better(folder, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(folder / "values", copy)
    metrics = json.loads((copy / "metrics.json").read_text())
    metrics["trivial"] |= {"tasks": {"logS": {"p_error": 0.0123}}, "better": True}
    (copy / "metrics.json").write_text(json.dumps(metrics))
    assert "The model is better than the mean value, p = 0.012." in write_report(copy).read_text()
    metrics["trivial"]["better"] = False
    (copy / "metrics.json").write_text(json.dumps(metrics))
    assert "The model is better" not in write_report(copy).read_text()


def test_a_page_of_values_does_not_speak_of_classes(folder):
    values, labels = (write_report(folder / name).read_text() for name in ("values", "labels"))
    assert "the same for every class" not in values + labels
    assert "without a sign" in values
    assert "the same for every task" in labels


@pytest.mark.parametrize("conformal", [None, {"validation": 0, "levels": []}, "nothing covered"])
def test_a_run_without_coverage_has_no_such_section(folder, tmp_path, conformal):
    copy = tmp_path / "run"
    shutil.copytree(folder / "values", copy)
    metrics = json.loads((copy / "metrics.json").read_text())
    if conformal == "nothing covered":
        conformal = TWO | {"levels": [level | {"covered": None} for level in TWO["levels"]]}
    metrics["conformal"] = conformal
    if conformal is None:
        del metrics["conformal"]  # as in runs of older versions
    (copy / "metrics.json").write_text(json.dumps(metrics))
    page = write_report(copy).read_text()
    assert "Measured and predicted" in page
    assert TITLE not in page
    assert "90 % interval" not in page


def test_classes_and_yes_no_tasks_have_sets(folder, run_folder, tmp_path):
    labels = write_report(folder / "labels").read_text()
    assert f"<h2>{TITLE} sets</h2>" in labels
    assert f"calibrated on {numbers_of(folder / 'labels')['validation']} validation graphs in the task with" in labels
    classes = write_report(run_folder[0], tmp_path / "classes.html", graphs=run_folder[1], errors=0).read_text()
    assert f"<h2>{TITLE} sets</h2>" in classes
    assert "mean classes per set" in classes


def test_levels_by_hand():
    few = TWO | {"validation": 8}  # a coverage of 0.9 needs 9
    assert [level.coverage for level in known_levels(few)] == [0.5]
    assert half_widths(TWO, VALUE) == {"a": 1.0}
    assert half_widths(TWO, Target(classes=("a", "b"))) == {}
    pair = Target(kind="regression", names=("a", "b"))
    assert half_widths(TWO, pair) == {}  # an older run: the mean width of both is no width
    assert half_widths({"validation": 12, "levels": [TWO["levels"][1] | {"sizes": {"a": 3.0, "b": None}}]}, pair) == {
        "a": 1.5  # b has too few validation graphs
    }
    assert coverage_panel(TWO | {"levels": []}, VALUE) is None
    panel = coverage_panel(TWO, VALUE)
    assert panel.table.rows == [["50 %", "62.5 %", "1.5"], ["90 %", "87.5 %", "2"]]
    assert panel.note.endswith("calibrated on 12 validation graphs.")
    lacking = "90 % intervals need at least 9 validation graphs, there are 8."
    assert coverage_panel(few, VALUE).note.endswith(f"calibrated on 8 validation graphs. {lacking}")
    none = TWO | {"validation": 0}
    assert coverage_panel(none, VALUE) == Panel(f"{TITLE} intervals", note=lacking.replace("8", "0"))


def test_the_band_is_parallel_to_the_diagonal():
    y = np.array([[0.0], [10.0]])  # the axes reach from −0.4 to 10.4
    panel, _ = task_panels(task_of(VALUE), y, y, VALUE, {"a": 1.8})
    (points,) = re.findall(r'<polygon points="([^"]+)"', panel.chart.svg)
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    corners = [tuple(map(float, point.split(","))) for point in points.split()]
    share = [((x - LEFT) / across, (HEIGHT - BOTTOM - at) / up) for x, at in corners]
    sixth = 1.8 / 10.8
    expected = [(0, sixth), (sixth, 2 * sixth), (1 - sixth, 1), (1, 1), (1, 1 - sixth), (1 - sixth, 1 - 2 * sixth)]
    expected += [(sixth, 0), (0, 0)]
    assert np.allclose(share, expected, atol=1e-3)


def test_an_ensemble_is_no_model_of_one_epoch(tmp_path):
    tables = {
        "data": {"source": "synthetic:cycles?graphs=40"}, "model": {"method": "asap", "hidden": 4, "levels": 1},
        "train": {"epochs": 2, "select_by": "loss"}, "split": {"val": 0.25, "test": 0.25},
    }  # fmt: skip
    graphs = load(tables["data"]["source"])
    train_ensemble(RunSettings.from_dict(tables), graphs, tmp_path / "e", 2, InlineEngine())
    page = write_report(tmp_path / "e", graphs=graphs).read_text()
    assert "An ensemble of 2 members" in page
    assert "<small>ensemble of 2</small>" in page
    assert "the model is from epoch" not in page
    assert not re.search(r"<small>epoch \d", page)
