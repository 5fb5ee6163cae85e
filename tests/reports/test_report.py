"""The pages of runs and comparisons: what they show is what the files say."""

import csv
import json
import shutil

import numpy as np
import pytest

from asapool.data import load
from asapool.errors import CheckpointError
from asapool.experiments import Store, compare, cross_validate, methods_plan
from asapool.experiments.comparison_text import write_tables
from asapool.models import ModelConfig
from asapool.reports import report_page, write_report
from asapool.reports.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, line_chart
from asapool.reports.comparison_page import comparison_page
from asapool.reports.curves import calibration_points, confusion_table, shown_classes
from asapool.reports.method_cards import Named, mean_curve, method_section, pooled, surest
from asapool.reports.mistakes import surest_mistakes
from asapool.reports.record import read_run
from asapool.training import TrainConfig
from tests.reports.browser import keep, opened

RUDE = "<script>window.hurt=1</script>"


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """A small comparison."""
    graphs, folder = load("synthetic:cycles?graphs=30&nodes=6"), tmp_path_factory.mktemp("cv") / "cmp"
    models = {name: ModelConfig(method=name, hidden=4) for name in ("asap", "mlp")}
    plan = methods_plan(graphs, models, train=TrainConfig(epochs=2), folds=3, seeds=(1, 2))
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
        assert "of the class 'alert'" in words  # whose precision and recall
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
    records = Store.read(folder).values()
    path = write_report(folder, tmp_path / "report.html")
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for row in answer.rows:
            assert f"{100 * row.mean:.2f}" in words
            assert f"{100 * row.over_seeds:.2f}" in words
        dots = page.locator("svg[aria-label='test accuracy of every fold'] circle")
        assert dots.count() == 12  # two methods, two seeds, three folds
        assert "p (corrected t)" in words
        assert page.locator("svg.chart").count() == 1 + 2 * 5  # ROC, precision, calibration, loss, accuracy of both
        shown = page.locator("table.confusion").all_inner_texts()
        assert len(shown) == 2
        for told, row in zip(shown, answer.rows, strict=True):
            mine = [r.test["confusion"] for r in records if r.run.model.method == row.method]
            for n in np.sum(mine, axis=0).ravel():
                assert f"{n:,}" in told
        keep(page, f"comparison-{width}-{scheme}")


def test_a_method_s_surest_mistakes_are_those_of_its_records(crossed):
    records = [r for r in Store.read(crossed[0]).values() if r.run.model.method == "asap"]
    graphs = Named.read(crossed[0] / "graphs.csv")
    wrong = []
    for r in records:
        for g, p in zip(r.probabilities["graphs"], r.probabilities["proba"], strict=True):
            answer = r.test["class_names"][int(np.argmax(p))]
            if answer != graphs.classes[g]:
                wrong.append((max(p), graphs.ids[g], graphs.classes[g], answer, str(r.run.fold), str(r.run.seed)))
    found = pooled(records, graphs)
    assert len(found.y) == 60  # thirty graphs, each tested once per seed
    assert [found.probability[k].max() for k in surest(found, 4)] == sorted((w[0] for w in wrong), reverse=True)[:4]
    sure, *cells = max(wrong)
    row = "".join(f"<td>{cell}</td>" for cell in (*cells[1:3], f"{sure:.3f}", *cells[3:]))
    assert f'<th scope="row">{cells[0]}</th>{row}' in method_section("asap", records, graphs)
    right = np.eye(2)[found.y]
    assert surest(found._replace(probability=right)) == []
    assert method_section("asap", [], graphs) == ""


def test_a_band_reaches_as_far_as_the_trainings_deviate():
    histories = [[{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}], [{"epoch": 1, "loss": 3.0}]]
    assert mean_curve(histories, "loss") == ([1.0, 2.0], [2.0, 0.5], [1.0, 0.0])  # one of them stopped early
    chart = line_chart([Line("a", [0, 1], [2, 2], band=[1, 0])], "a", "x", "y", (0, 1), (0, 4))
    width, height = WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP
    upper, middle, lower = (f"{TOP + height * share:.1f}" for share in (0.25, 0.5, 0.75))
    left, right = f"{LEFT:.1f}", f"{LEFT + width:.1f}"
    assert f'<polygon points="{left},{upper} {right},{middle} {right},{middle} {left},{lower}"' in chart


def test_a_cross_validation_without_its_table_or_its_graphs_is_refused(crossed, tmp_path):
    shutil.copytree(crossed[0], tmp_path / "cv")
    (tmp_path / "cv" / "table.json").rename(tmp_path / "table.json")
    with pytest.raises(CheckpointError, match=r"the cross-validation is not finished\. Give its command again"):
        report_page(tmp_path / "cv")
    (tmp_path / "table.json").rename(tmp_path / "cv" / "table.json")
    (tmp_path / "cv" / "graphs.csv").unlink()
    with pytest.raises(CheckpointError, match="its files do not fit together"):
        report_page(tmp_path / "cv")


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
