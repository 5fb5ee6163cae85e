"""The page of motifs in a browser: the table sorts, searches and hides variants; levels can be played."""

from dataclasses import replace

import pytest

import asapool
from asapool.data import load
from asapool.models import ModelConfig, build
from asapool.reports.explain_page import explain_page
from asapool.reports.motifs_page import motifs_page
from tests.reports.browser import keep, opened


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("motifs")
    texts = ["Nc1ccccc1", "CNc1ccccc1", "O=[N+]([O-])c1ccccc1", "CC(=O)OC"] * 3
    (folder / "m.csv").write_text("smiles,label\n" + "".join(f"{t},{'ab'[k % 2]}\n" for k, t in enumerate(texts)))
    graphs = load(folder / "m.csv")
    model = build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=0)
    result = asapool.motifs(model, graphs, min_graphs=2)
    rows = (replace(result.rows[0], name="<img src=x onerror=alert(1)>", variant_of=None), *result.rows[1:])
    (folder / "m.html").write_text(motifs_page(replace(result, rows=rows), graphs))
    (folder / "e.html").write_text(explain_page([asapool.explain(model, graphs, 0)]))
    return folder, replace(result, rows=rows)


@pytest.mark.parametrize("width", [375, 1440])
def test_the_table_sorts_and_searches(browser, made, width):
    folder, result = made
    with opened(browser, folder / "m.html", width) as page:
        visible = page.locator("[data-row]:not([hidden])")
        alone = sum(m.variant_of is None for m in result)
        assert visible.count() == alone
        page.locator("[data-by=graphs]").click()
        counts = [int(row.get_attribute("data-graphs")) for row in visible.all()]
        assert counts == sorted(counts, reverse=True)
        page.locator("[data-by=graphs]").click()
        assert [int(row.get_attribute("data-graphs")) for row in visible.all()] == counts[::-1]
        page.locator("[data-search]").fill("onerror")
        assert visible.count() == 1
        assert page.locator("[data-count]").inner_text() == f"1 of {len(result)}"
        keep(page, f"motifs-{width}")


def test_levels_can_be_played(browser, made):
    folder, _ = made
    with opened(browser, folder / "e.html") as page:
        page.emulate_media(reduced_motion="reduce")
        page.reload()
        page.locator("[data-play]").click()
        assert page.locator("[data-play]").inner_text() == "■ Stop"
        page.locator("[data-play]", has_text="▶").wait_for(timeout=20_000)
        assert page.locator("[data-level]:checked").get_attribute("value") == "2"
        assert page.locator("[data-moving]").count() == 0
