"""The pages of runs and comparisons: what they show is what the files say."""

import csv
import json
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from asapool.data import load
from asapool.errors import CheckpointError
from asapool.experiments import Store, cross_validate, methods_plan
from asapool.models import ModelConfig
from asapool.reports import report_page, write_report
from asapool.reports.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, line_chart
from asapool.reports.comparison_page import GraphNames, comparison_page, evaluated_graphs, method_view
from asapool.reports.curves import confusion_matrix, mean_and_deviation, shown_classes, threshold_table
from asapool.reports.run_page import read_run
from asapool.training import TrainConfig
from asapool.training.metrics import calibration_bins, calibration_error
from asapool.training.task_scores import most_confident_errors
from tests.reports.browser import keep, opened

RUDE = "<script>window.hurt=1</script>"


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """A small comparison."""
    graphs, folder = load("synthetic:cycles?graphs=30&nodes=6"), tmp_path_factory.mktemp("cv") / "cmp"
    models = {name: ModelConfig(method=name, hidden=4) for name in ("asap", "mlp")}
    plan = methods_plan(graphs, models, train=TrainConfig(epochs=2), folds=3, seeds=(1, 2))
    return folder, cross_validate(graphs, plan, folder)


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1440, "light")])
def test_a_run_has_its_scores_curves_and_most_confident_errors(browser, run_folder, tmp_path, width, scheme):
    folder, graphs = run_folder
    path = write_report(folder, tmp_path / "report.html", graphs=graphs, errors=2)
    metrics = json.loads((folder / "metrics.json").read_text())
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for key in ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error"):
            assert f"{metrics['test'][key]:.3f}" in words
        assert "of the class 'alert'" in words  # whose precision and recall
        parts = metrics["parts"]
        about = f"{parts['train']} training, {parts['val']} validation, {parts['test']} test graphs (stratified split)"
        assert page.locator(".lead").first.inner_text() == about
        assert f"training accuracy\n{metrics['train']['accuracy']:.3f}" in words
        counts = [str(sum(metrics[part]["confusion"][1])) for part in ("train", "validation", "test")]
        assert "\t".join(["alert", *counts]) in words
        widths = page.locator(".confusion tbody tr").first.locator("td").evaluate_all("a => a.map(e => e.offsetWidth)")
        assert max(widths) - min(widths) <= 1
        # loss, accuracy, ROC, precision and recall, calibration, coverage
        assert page.locator("svg.chart").count() == 6
        for row in metrics["test"]["confusion"]:
            for n in row:
                assert f"{n:,}" in page.locator(".confusion").inner_text()
        with (folder / "predictions.csv").open() as file:
            wrong = [r for r in csv.DictReader(file) if r["label"] != r["predicted"]]
        wrong.sort(key=lambda r: -max(float(r["p(clean)"]), float(r["p(alert)"])))
        assert page.locator(".explorer h3").first.inner_text() == wrong[0]["id"]
        assert page.locator(".explorer").count() == 2
        page.locator("#m0 [data-view][value='clusters']").check()
        page.locator(".explorer [data-level][value='2']").first.check()
        assert page.locator('#m0 [data-layer="clusters"][data-at="2"]').is_visible()
        keep(page, f"report-{width}-{scheme}")
    assert path.stat().st_size < 6_000_000


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1440, "dark")])
def test_a_comparison_has_its_table_its_spread_and_its_tests(browser, crossed, tmp_path, width, scheme):
    folder, answer = crossed
    records = Store.read(folder).values()
    path = write_report(folder, tmp_path / "report.html")
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for cell in answer.cells:
            assert f"{cell.mean:.2f}" in words
            assert f"{cell.over_seeds:.2f}" in words
        dots = page.locator("svg[aria-label='test accuracy of every fold'] circle")
        assert dots.count() == 12  # two methods, two seeds, three folds
        tips = dots.evaluate_all("all => all.map(e => parseFloat(e.textContent.split(': ')[1]))")
        accuracies = sorted(round(100 * r.test["accuracy"], 2) for r in records)
        assert sorted(tips) == pytest.approx(accuracies)  # in percent, as the table
        assert f"difference to {answer.reference}" in words
        page.get_by_text("What the columns mean").click()
        assert "Holm's adjustment" in page.locator("main").inner_text()
        assert page.locator(".swipe:visible").count() == (0 if width > 1000 else page.locator(".swipe").count())
        assert (page.get_by_text("Scroll sideways").count() > 0) == (width < 1000)
        assert "p (corrected t)" in words
        assert page.locator("svg.chart").count() == 1 + 2 * 5  # ROC, precision, calibration, loss, accuracy of both
        shown = page.locator("table.confusion").all_inner_texts()
        assert len(shown) == 2
        for reported, row in zip(shown, answer.rows, strict=True):
            mine = [r.test["confusion"] for r in records if r.run.model.method == row]
            for n in np.sum(mine, axis=0).ravel():
                assert f"{n:,}" in reported
        keep(page, f"comparison-{width}-{scheme}")


def test_a_method_s_most_confident_errors_are_those_of_its_records(crossed):
    records = [r for r in Store.read(crossed[0]).values() if r.run.model.method == "asap"]
    graphs = GraphNames.read(crossed[0] / "graphs.csv")
    wrong = []
    for r in records:
        for g, p in zip(r.probabilities["graphs"], r.probabilities["proba"], strict=True):
            answer = r.test["class_names"][int(np.argmax(p))]
            if answer != graphs.classes[g]:
                wrong.append((max(p), graphs.ids[g], graphs.classes[g], answer, str(r.run.fold), str(r.run.seed)))
    tested = evaluated_graphs(records, graphs)
    assert len(tested.y) == 60  # thirty graphs, each tested once per seed
    places = most_confident_errors(tested.y, tested.probability, 4)
    assert [tested.probability[k].max() for k in places] == sorted((w[0] for w in wrong), reverse=True)[:4]
    sure, *cells = max(wrong)
    assert [*cells[:3], f"{sure:.3f}", *cells[3:]] in method_view("asap", records, graphs)["errors"].rows
    assert most_confident_errors(tested.y, np.eye(2)[tested.y], 4) == []
    assert method_view("asap", [], graphs) is None


def test_a_method_without_epochs_has_no_curves(crossed, tmp_path):
    graphs = load("synthetic:cycles?graphs=30&nodes=6")
    models = {"histogram": ModelConfig(method="histogram")}
    cross_validate(graphs, methods_plan(graphs, models, train=TrainConfig(), folds=3, seeds=(1,)), tmp_path / "cv")
    for folder, method, curves in ((crossed[0], "asap", 2), (tmp_path / "cv", "histogram", 0)):
        records = [r for r in Store.read(folder).values() if r.run.model.method == method]
        view = method_view(method, records, GraphNames.read(folder / "graphs.csv"))
        assert sum("by epoch" in panel.title for panel in view["panels"]) == curves


def test_errors_of_molecules_come_with_their_structures(crossed):
    records = [r for r in Store.read(crossed[0]).values() if r.run.model.method == "asap"]
    graphs = GraphNames.read(crossed[0] / "graphs.csv")
    errors = method_view("asap", records, graphs._replace(texts=["CCO"] * len(graphs.ids)))["errors"]
    assert errors.header[1] == "structure"
    assert all(row[1].startswith('<svg class="structure"') for row in errors.rows)
    rude = method_view("asap", records, graphs._replace(texts=[RUDE] * len(graphs.ids)))["errors"]
    assert "structure" not in rude.header  # no molecule


def test_a_band_reaches_as_far_as_the_trainings_deviate():
    mean, deviation = mean_and_deviation([np.array([1.0, 0.5]), np.array([3.0])])  # one of them stopped early
    assert (mean.tolist(), deviation.tolist()) == ([2.0, 0.5], [2**0.5, 0.0])  # n − 1
    chart = line_chart([Line("a", [0, 1], [2, 2], band=[1, 0])], "a", "x", "y", (0, 1), (0, 4)).svg
    width, height = WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP
    upper, middle, lower = (f"{TOP + height * share:.1f}" for share in (0.25, 0.5, 0.75))
    left, right = f"{LEFT:.1f}", f"{LEFT + width:.1f}"
    assert f'<polygon points="{left},{upper} {right},{middle} {right},{middle} {left},{lower}"' in chart


def test_a_cross_validation_without_its_table_or_its_graphs_is_refused(crossed, tmp_path):
    shutil.copytree(crossed[0], tmp_path / "cv")
    records = (tmp_path / "cv" / "runs.jsonl").read_text()
    (tmp_path / "cv" / "runs.jsonl").write_text("".join(records.splitlines(keepends=True)[:-1]))
    with pytest.raises(CheckpointError, match=r"the cross-validation is not finished\. Run its command again"):
        report_page(tmp_path / "cv")
    (tmp_path / "cv" / "runs.jsonl").write_text(records)
    (tmp_path / "cv" / "graphs.csv").unlink()
    with pytest.raises(CheckpointError, match="its files are inconsistent"):
        report_page(tmp_path / "cv")


def test_the_paper_stands_beside_its_own_data_sets(crossed, tmp_path):
    graphs = load("synthetic:cycles?graphs=30&nodes=6").renamed("NCI1")
    plan = methods_plan(graphs, {"asap": ModelConfig(hidden=4)}, train=TrainConfig(epochs=1), folds=3)
    cross_validate(graphs, plan, tmp_path / "nci1")
    page = comparison_page(tmp_path / "nci1")
    assert "71.48 ± 0.42" in page
    assert "so there is no verdict on its numbers" in page
    assert '<th scope="col">paper</th>' in page
    assert '<th scope="col">paper</th>' not in comparison_page(crossed[0])


def test_what_the_page_says_of_names_is_text(browser, run_folder, tmp_path):
    folder = tmp_path / "rude"
    shutil.copytree(run_folder[0], folder)
    for name in ("metrics.json", "predictions.csv", "config.toml"):
        reported = (folder / name).read_text().replace("alert", RUDE)
        (folder / name).write_text(reported)
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
    assert "The graphs cannot be drawn: gone.csv: there is no such file" in report_page(folder)


def test_a_folder_without_a_finished_run_is_refused_in_a_sentence(run_folder, tmp_path):
    with pytest.raises(CheckpointError, match="contains neither a run"):
        report_page(tmp_path)
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(CheckpointError, match=r"the run is not finished\. Resume it with: asapool train --resume"):
        report_page(tmp_path)
    folder = tmp_path / "damaged"
    shutil.copytree(run_folder[0], folder)
    (folder / "predictions.csv").write_text("graph,id,label,predicted,p(clean),p(alert)\n0,a,cloudy,clean,1,0\n")
    with pytest.raises(CheckpointError, match="are inconsistent"):
        report_page(folder)


def test_the_most_confident_errors_come_first(run_folder):
    record = read_run(run_folder[0])
    places = most_confident_errors(record.y, record.probability, 100)
    sure = record.probability[places].max(axis=1)
    assert (np.diff(sure) <= 0).all()
    assert (record.probability[places].argmax(axis=1) != record.y[places]).all()


def test_curves_by_hand():
    y, p = np.array([0, 1, 1, 0]), np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    bins = calibration_bins(p.max(axis=1), p.argmax(axis=1) == y)
    assert np.allclose(bins.confidence, [0.65, 0.95])
    assert (bins.accuracy.tolist(), bins.graphs.tolist()) == ([0.5, 0.5], [2, 2])
    gaps = np.abs(bins.confidence - bins.accuracy) * bins.graphs
    assert calibration_error(p.max(axis=1), p.argmax(axis=1) == y) == pytest.approx(gaps.sum() / 4)
    assert shown_classes(y, 2) == [1]
    assert shown_classes(np.array([0, 2, 2, 3]), 5) == [2, 0, 3]  # absent classes have no curve
    assert shown_classes(np.array([1, 1]), 2) == []
    assert confusion_matrix([[3, 1], [0, 0]], ["a", "b"]).rows[0].cells[0].share == "75%"


def test_thresholds_by_hand():
    table = threshold_table(np.array([False, True, True, False]), np.array([0.05, 0.25, 0.65, 0.65]), "b")
    assert dict(zip(table.header, table.rows[4], strict=True)) == {
        "threshold": "0.5", "graphs above": "2", "precision": "0.500", "recall": "0.500", "specificity": "0.500",
        "accuracy": "0.500",
    }  # fmt: skip
    assert table.rows[8][2:] == ["–", "0.000", "1.000", "0.500"]  # nothing is above 0.9


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_can_be_saved(browser, run_folder, tmp_path, scheme):
    path = write_report(run_folder[0], tmp_path / "report.html", graphs=run_folder[1], errors=0)
    page = browser.new_page(color_scheme=scheme)
    page.goto(path.as_uri())
    assert page.locator("figure [data-save='svg']").count() == page.locator("svg.chart").count() == 6
    with page.expect_download() as saved:
        page.locator("figure[data-figure='ROC curve'] [data-save='svg']").click()
    assert saved.value.suggested_filename == "ROC-curve.svg"
    text = saved.value.path().read_text()
    assert "var(" not in text
    assert {"guessing", "at threshold 0.5"} <= {e.text for e in ET.fromstring(text).iter()}  # the legend is in it
    with page.expect_download() as saved:
        page.locator("figure[data-figure='ROC curve'] [data-save='png']").click()
    with Image.open(saved.value.path()) as image:
        assert image.size[0] == 3 * WIDTH
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    page.close()
