"""The page of reproduced tables: what it shows is what the store says, in a real browser."""

import json
import xml.etree.ElementTree as ET

import pytest

from asapool.errors import DataError
from asapool.experiments import paper
from asapool.experiments.cells import TableCell
from asapool.experiments.fold import run
from asapool.experiments.plan import Plan, load_graphs, load_plan
from asapool.experiments.record import failed, machine
from asapool.experiments.reproducing import reproduce
from asapool.experiments.store import Store
from asapool.experiments.tables import Table, make_table
from asapool.reports import report_page, write_report
from asapool.reports.plan_figures import Mark, forest_chart, plan_chart, plan_figure
from asapool.reports.results_page import results_page
from tests.experiments.test_overview import PLAN, VALUES, store_of
from tests.reports.browser import keep, opened

SVG = "{http://www.w3.org/2000/svg}"
RUDE = "<script>window.hurt=1</script>"
# small graphs under the names of the paper's data sets, so that its numbers stand beside
PLANS = {
    "table2": """
        [plan]
        name = "table2"
        title = "Comparison of pooling methods"
        seeds = 3
        folds = 3
        [train]
        epochs = 3
        [[data]]
        name = "NCI1"
        source = "synthetic:cycles?graphs=40&nodes=6"
        model = { hidden = 8 }
        [[data]]
        name = "Mutagenicity"
        source = "synthetic:cycles?graphs=30&nodes=5"
        model = { hidden = 8 }
        [[row]]
        name = "asap"
        model = { method = "asap" }
        [[row]]
        name = "topk"
        model = { method = "topk" }
        [[row]]
        name = "none"
        model = { method = "none" }
        """,
    "figure-ratio": """
        [plan]
        name = "figure-ratio"
        title = "Sampling ratio k"
        metric = "validation"
        seeds = 2
        folds = 3
        [train]
        epochs = 3
        [[data]]
        name = "NCI1"
        source = "synthetic:cycles?graphs=40&nodes=6"
        model = { hidden = 8 }
        """
    + "".join(f'\n[[row]]\nname = "k = 0.{k}"\nmodel = {{ ratio = 0.{k} }}' for k in (1, 5, 9)),
}


@pytest.fixture(scope="module", autouse=True)
def short_paper():
    """As if the paper had trained for three epochs too: otherwise there are no verdicts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "EPOCHS", 3)
        yield


class Here:
    """Trains in this process; one Run comes to nothing, and one is not reached."""

    def __init__(self, reason="no memory"):
        self.reason = reason

    def work(self, runs, graphs, on_progress):
        for one in runs:
            bad = one.data == "Mutagenicity" and one.model.method == "topk"
            if bad and (one.seed, one.fold) == (8971, 1):
                yield failed(one, self.reason, machine())
            elif not (bad and one.fold == 2 and one.seed == 9467):
                yield run(graphs[one.fingerprint], one)


def carried_out(folder, names=("table2", "figure-ratio"), engine=None, change=str):
    plans = []
    for name in names:
        (folder.parent / f"{name}.toml").write_text(change(PLANS[name]))
        plans.append(load_plan(folder.parent / f"{name}.toml"))
    graphs = load_graphs(plans)
    reproduce([*(plan.name for plan in plans), "table1"], plans, graphs, folder, engine or Here())
    return [make_table(plan, Store.read(folder, light=True)) for plan in plans]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "out"
    return folder, carried_out(folder)


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (375, "light"), (1440, "light"), (1440, "dark")])
def test_every_table_has_ours_the_paper_s_and_the_verdict(browser, reproduced, tmp_path, width, scheme):
    folder, tables = reproduced
    path = write_report(folder, tmp_path / "report.html")
    with opened(browser, path, width, scheme) as page:
        words = page.locator("main").inner_text()
        for cell in (cell for table in tables for cell in table.cells):
            assert f"{cell.mean:.2f}" in words
        cell = tables[0].cell("asap", "NCI1")
        assert "paper 71.48 ± 0.42" in words
        assert f"({cell.difference:+.2f})".replace("-", "−") in words
        assert "paper FRANKENSTEIN 66.26 ± 0.47 (other data)" in words
        assert "ASAP has the highest accuracy on every data set" in words
        assert "Accuracy grows with the sampling ratio k" in words
        assert "no memory" in words  # the training that failed
        assert "7 in 3 seeds of 3 × 3, 1 failed" in words
        assert "✓\u00a0yes" in words  # table1
        assert page.locator("svg.chart:visible").count() == 3  # two columns against the paper, and the figure
        for summary in page.locator("summary").all():
            summary.click()
        keep(page, f"results-{width}-{scheme}")
        # means of two columns, folds of three, two curves of each cell, the figure
        assert page.locator("svg.chart:visible").count() == 2 + 3 + 2 * 9 + 1
        assert page.locator("#table2 .glance tbody tr").count() == 3


def test_the_charts_have_a_mark_for_every_number(browser, reproduced, tmp_path):
    folder, tables = reproduced
    with opened(browser, write_report(folder, tmp_path / "report.html")) as page:
        bands = page.locator("#table2 rect.theirs")
        assert bands.count() == 2  # asap and topk on NCI1; none is not in the paper, other data have no band
        label = page.locator("#table2 svg.chart").first.get_attribute("aria-label")
        cell = tables[0].cell("asap", "NCI1")
        assert f"asap: {cell.mean:.2f} ± {cell.over_seeds:.2f}, the paper 71.48 ± 0.42" in label
        page.get_by_text("Every fold and seed").first.click()
        dots = page.locator('#table2 svg[aria-label^="NCI1, every fold"] circle')
        assert dots.count() == sum(c.folds for c in tables[0].cells if c.column == "NCI1") == 27


def test_the_figure_is_a_file_of_its_own(reproduced):
    folder, tables = reproduced
    write_report(folder)
    texts = [element.text for element in ET.parse(folder / "figure-ratio.svg").iter(f"{SVG}text")]
    assert "sampling ratio k" in texts
    assert "NCI1, the paper at k = 0.5: 73.40 ± 0.40" in texts
    (axes,) = plan_figure(tables[1]).axes
    ours, paper = axes.lines
    assert ours.get_ydata().tolist() == [cell.mean for cell in tables[1].cells]
    assert paper.get_ydata().tolist() == [73.4, 73.4]
    assert len(axes.collections) == 2  # our band and the paper's
    assert (folder / "figure-ratio.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figure-ratio.pdf").read_bytes().startswith(b"%PDF")


def test_accuracy_against_distance_has_a_line_per_method():
    def cell(row, column, mean):
        return TableCell(row=row, column=column, mean=mean, over_folds=1.0, expected=3, settings={})

    means = {
        ("asap+", "chains-2"): 90.0,
        ("asap+", "chains-8"): 80.0,
        ("wl", "chains-2"): 99.0,
        ("wl", "chains-8"): 50.0,
    }
    cells = [cell(*key, mean) for key, mean in means.items()] + [cell("asap+", "gcb-easy", 70.0)]
    table = Table(
        name="pooling-range", title="t", metric="test", rows=("asap+", "wl"),
        columns=("chains-2", "chains-8", "gcb-easy"),
        cells=tuple(cells), seeds=(1,), folds=3, protocol="stratified",
    )  # fmt: skip
    (axes,) = plan_figure(table).axes
    drawn = [(line.get_label(), line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.lines]
    assert drawn == [
        ("asap+, ± over folds", [2.0, 8.0], [90.0, 80.0]), ("wl, ± over folds", [2.0, 8.0], [99.0, 50.0])
    ]  # fmt: skip
    assert "distance between the motifs" in plan_chart(table).label


def test_the_page_is_never_older_than_the_store(reproduced, tmp_path):
    """Tables on the page are made from the records, not from the files that lie beside them."""
    folder = reproduced[0]
    for name in ("runs.jsonl", "table2.plan.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    lines = (tmp_path / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "runs.jsonl").write_bytes(b"".join(lines[:9]))
    assert "9 of 54 training runs are done" in results_page(tmp_path)
    assert "53 of 54 training runs are done" not in results_page(tmp_path)
    assert "52 of 54 training runs are done" in results_page(folder)  # one failed, one was not reached


def test_what_people_wrote_is_text(browser, tmp_path):
    def rude(text):
        return text.replace('name = "asap"', f'name = "{RUDE}"').replace("Comparison of", RUDE)

    folder = tmp_path / "out"
    carried_out(folder, ("table2",), Here(reason=RUDE), rude)
    with opened(browser, write_report(folder)) as page:
        assert page.evaluate("window.hurt") is None
        words = page.locator("main").inner_text()
        assert words.count(RUDE) >= 3  # the title, a row of the table, and the reason of the failure


def test_a_folder_with_records_alone_is_refused_in_a_sentence(reproduced, tmp_path):
    (tmp_path / "runs.jsonl").write_bytes((reproduced[0] / "runs.jsonl").read_bytes())
    with pytest.raises(DataError, match="contains records but no plan of a table"):
        report_page(tmp_path)


def test_tables_without_training_have_a_page_too(reproduced, tmp_path):
    (tmp_path / "table1.json").write_bytes((reproduced[0] / "table1.json").read_bytes())
    changed = json.loads((tmp_path / "table1.json").read_text())
    assert "The paper's table agrees." in report_page(tmp_path).replace("&#39;", "'")
    changed["findings"]["asap"]["Sparse"]["holds"], changed["agrees"] = False, False
    (tmp_path / "table1.json").write_text(json.dumps(changed))
    assert "–\u00a0no (the paper: yes)" in report_page(tmp_path)


@pytest.mark.parametrize(("name", "heading"), [("table2", "Our results and the paper's ± band"), ("x", "Our results")])
def test_the_charts_promise_a_band_of_the_paper_only_where_there_is_one(name, heading, tmp_path):
    plan = Plan(**vars(PLAN) | {"name": name})
    page = report_page(store_of(tmp_path, plan, VALUES)).replace("&#39;", "'")
    assert f'<h3 class="part">{heading}</h3>' in page
    assert ("NCI1, ours and the paper" in page) == (name == "table2")


def test_a_forest_by_hand():
    chart = forest_chart([Mark("a", 70.0, 1.0, (69.0, 2.0)), Mark("b", None)], "two", "%").svg
    # from 67 to 71 with a twentieth of room on both sides: 66.8 … 71.2 over 238 units from 128
    assert 'cx="301.1"' in chart  # 128 + (70 − 66.8) / 4.4 · 238
    assert '<rect x="138.8"' in chart  # the paper's band begins at 67
    assert "two. a: 70.00 ± 1.00, the paper 69.00 ± 2.00; b: not measured" in chart
