"""The pages of runs and comparisons: what they show is what the files say."""

import csv
import json
import shutil

import numpy as np
import pytest

from asapool.data import load
from asapool.errors import CheckpointError
from asapool.models import ModelConfig
from asapool.reports import report_page, write_report
from asapool.reports.comparison_page import comparison_page
from asapool.reports.curves import calibration_points, confusion_table, shown_classes
from asapool.reports.mistakes import surest_mistakes
from asapool.reports.record import read_run
from asapool.training import Plan, TrainConfig, compare, cross_validate
from asapool.training.tables import write_tables
from tests.reports.browser import keep, opened

RUDE = "<script>window.hurt=1</script>"


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """A small comparison."""
    graphs, folder = load("synthetic:cycles?graphs=30&nodes=6"), tmp_path_factory.mktemp("cv") / "cmp"
    models = {name: ModelConfig(method=name, hidden=4) for name in ("asap", "mlp")}
    plan = Plan(models=models, train=TrainConfig(epochs=1), folds=3, seeds=(1, 2))
    results = cross_validate(graphs, plan, folder)
    answer = compare(results, 3)
    write_tables(folder, results, answer)
    return folder, answer


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1440, "light")])
def test_a_run_has_its_scores_curves_and_surest_mistakes(browser, run_folder, tmp_path, width, scheme):
    folder, graphs = run_folder
    path = write_report(folder, tmp_path / "report.html", graphs=graphs, mistakes=2)
    metrics = json.loads((folder / "metrics.json").read_text())
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for key in ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error"):
            assert f"{metrics['test'][key]:.3f}" in words
        assert page.locator("svg.chart").count() == 5  # loss, accuracy, ROC, precision and recall, calibration
        for row in metrics["test"]["confusion"]:
            for n in row:
                assert f"{n:,}" in page.locator(".confusion").inner_text()
        with (folder / "predictions.csv").open() as file:
            wrong = [r for r in csv.DictReader(file) if r["label"] != r["predicted"]]
        wrong.sort(key=lambda r: -max(float(r["p(clean)"]), float(r["p(alert)"])))
        assert page.locator(".explorer h3").first.inner_text() == wrong[0]["id"]
        assert page.locator(".explorer").count() == 2
        page.locator(".explorer [data-level][value='2']").first.check()
        assert page.locator('#m0 [data-layer="clusters"][data-at="2"]').is_visible()
        keep(page, f"report-{width}-{scheme}")
    assert path.stat().st_size < 6_000_000


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1440, "dark")])
def test_a_comparison_has_its_table_its_spread_and_its_tests(browser, crossed, tmp_path, width, scheme):
    folder, answer = crossed
    path = write_report(folder, tmp_path / "report.html")
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for row in answer.rows:
            assert f"{100 * row.mean:.2f}" in words
            assert f"{100 * row.over_seeds:.2f}" in words
        assert page.locator("svg.chart circle").count() == 12  # two methods, two seeds, three folds
        assert "p (corrected t)" in words
        keep(page, f"comparison-{width}-{scheme}")


def test_the_paper_stands_beside_its_own_data_sets(crossed, tmp_path):
    folder = tmp_path / "nci1"
    shutil.copytree(crossed[0], folder)
    plan = json.loads((folder / "plan.json").read_text())
    plan["data"]["name"] = "NCI1"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert "71.48 ± 0.42" in comparison_page(folder)
    assert '<th scope="col">the paper</th>' in comparison_page(folder)
    assert '<th scope="col">the paper</th>' not in comparison_page(crossed[0])


def test_what_the_page_says_of_names_is_text(browser, run_folder, tmp_path):
    folder = tmp_path / "rude"
    shutil.copytree(run_folder[0], folder)
    for name in ("metrics.json", "predictions.csv", "config.toml"):
        told = (folder / name).read_text().replace("alert", RUDE)
        (folder / name).write_text(told)
    path = write_report(folder)
    assert path == folder / "report.html"
    with opened(browser, path) as page:
        assert page.evaluate("window.hurt") is None
        assert RUDE in page.locator(".confusion").inner_text()


def test_graphs_that_are_gone_leave_a_sentence(run_folder, tmp_path):
    folder = tmp_path / "gone"
    shutil.copytree(run_folder[0], folder)
    text = (folder / "config.toml").read_text().replace('"nci-alerts"', '"gone.csv"')
    (folder / "config.toml").write_text(text)
    assert "They cannot be drawn: gone.csv: there is no such file" in report_page(folder)


def test_a_folder_without_a_finished_run_is_refused_in_a_sentence(run_folder, tmp_path):
    with pytest.raises(CheckpointError, match="holds neither a run"):
        report_page(tmp_path)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(CheckpointError, match=r"the run is not finished\. Go on with: asapool train --resume"):
        report_page(tmp_path)
    folder = tmp_path / "damaged"
    shutil.copytree(run_folder[0], folder)
    (folder / "predictions.csv").write_text("graph,id,label,predicted,p(clean),p(alert)\n0,a,cloudy,clean,1,0\n")
    with pytest.raises(CheckpointError, match="do not fit together"):
        report_page(folder)


def test_the_surest_mistakes_come_first(run_folder):
    record = read_run(run_folder[0])
    places = surest_mistakes(record, 100)
    sure = record.probability[places].max(axis=1)
    assert (np.diff(sure) <= 0).all()
    assert (record.probability[places].argmax(axis=1) != record.y[places]).all()


def test_curves_by_hand():
    y, p = np.array([0, 1, 1, 0]), np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    assert np.allclose(calibration_points(y, p)[0], [0.65, 0.95])
    assert calibration_points(y, p)[1:] == ([0.5, 0.5], [2, 2])
    assert shown_classes(y, 2) == [1]
    assert shown_classes(np.array([0, 2, 2, 3]), 5) == [2, 0, 3]  # absent classes have no curve
    assert shown_classes(np.array([1, 1]), 2) == []
    assert "75%" in confusion_table([[3, 1], [0, 0]], ["a", "b"])
