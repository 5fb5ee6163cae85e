"""The page of hierarchies, in a real browser: controls, numbers, keyboard, hostile names, size and speed."""

import dataclasses
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from asapool.insight import explain
from asapool.insight.drawing.canvas import canvas
from asapool.insight.drawing.overlays import node_numbers
from asapool.models import ModelConfig, build
from asapool.reports import explain_page
from asapool.reports.page import script_data
from tests.reports.browser import keep, opened

RUDE = "</script><script>window.hurt=1;alert(1)</script><!--<img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def page_file(hierarchies, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "page.html"
    path.write_text(explain_page(hierarchies), encoding="utf-8")
    return path


def shown(page, layer, root="#g0"):
    """At which levels (or whether) a layer can be seen."""
    groups = page.locator(f'{root} svg.graph > [data-layer="{layer}"]')
    return [groups.nth(k).get_attribute("data-at") for k in range(groups.count()) if groups.nth(k).is_visible()]


def clusters(page, root="#g0"):
    """Choose the view of clusters."""
    page.locator(f"{root} [data-view][value='clusters']").check()


def selected(page, root="#g0"):
    """The panel as {heading: {name: number}}."""
    return page.locator(f"{root} [data-selected]").evaluate(
        """box => {
            const found = {}; let head = "";
            for (const e of box.children) {
                if (e.tagName !== "UL") head = e.textContent;
                else found[head] = Object.fromEntries([...e.querySelectorAll("li")].filter(r => r.querySelector("b"))
                    .map(r => [...r.children].map(e => e.textContent)).map(([, name, v, more]) => [name, v + more]));
            }
            return found;
        }"""
    )


def test_levels_change_by_pointer_and_by_keyboard(browser, page_file, hierarchies):
    with opened(browser, page_file) as page:
        assert shown(page, "substitution") == [None]  # a molecule opens with importance
        assert shown(page, "clusters") == shown(page, "links") == shown(page, "badges") == []
        clusters(page)
        clusters(page, "#g1")
        assert (shown(page, "clusters"), shown(page, "links")) == (["1"], ["1"])
        page.get_by_role("radio", name="Level 2").first.check()
        assert (shown(page, "clusters"), shown(page, "links")) == (["2"], ["2"])
        page.keyboard.press("ArrowRight")
        assert shown(page, "clusters") == ["3"]
        areas = page.locator('#g0 [data-layer="clusters"][data-at="3"] path[stroke][opacity]')
        assert areas.count() == len(hierarchies[0].levels[2])
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        assert shown(page, "clusters") == []
        assert shown(page, "clusters", "#g1") == ["1"]  # the other graph has its own controls


def test_views_show_importance_and_the_true_reason(browser, page_file):
    with opened(browser, page_file) as page:
        for kind in ("attention", "gradient", "occlusion"):
            page.get_by_role("radio", name=kind.capitalize()).first.check()
            assert shown(page, kind) == [None]
            assert shown(page, "clusters") == shown(page, "links") == []
        page.get_by_role("radio", name="Clusters").first.check()
        page.get_by_role("checkbox", name="pooled edges").first.uncheck()
        assert (shown(page, "clusters"), shown(page, "links")) == (["1"], [])


@pytest.mark.parametrize("level", [1, 2, 3])
def test_hover_tells_the_numbers_of_the_library(browser, page_file, hierarchies, level):
    one = hierarchies[0]
    shares = one.assignment(level).toarray()
    names = [f"{one.names[v]} {v}" for v in range(one.nodes)]
    with opened(browser, page_file) as page:
        clusters(page)
        page.get_by_role("radio", name=f"Level {level}").first.check()
        for v in range(0, one.nodes, 4):
            page.locator(f'#g0 [data-node="{v}"]').dispatch_event("pointerenter")
            seen = selected(page)
            important = seen.pop(f"Importance for {one.answer}")
            assert important == {kind: f"{scores[v] + 0.0:.4f}" for kind, scores in one.importance.items()}
            medoids, fitness = one.levels[level - 1].medoid, one.levels[level - 1].kept_fitness
            mine = np.flatnonzero(shares[v])
            rows = next((rows for head, rows in seen.items() if head.startswith("In ")), {})
            assert len(rows) == min(len(mine), 5)
            for k in mine:
                row = rows.get(f"{k} around {names[medoids[k]]}")
                assert row in (None, f"{shares[v, k]:.4f}fitness {fitness[k]:.4f}")
            for head, members in seen.items():
                if head.startswith("Cluster "):
                    k = int(head.split()[1])
                    assert head == f"Cluster {k} around {names[medoids[k]]}, fitness {fitness[k]:.4f}"
                    assert members == {
                        names[u]: f"{shares[u, k]:.4f}"
                        for u in np.argsort(-shares[:, k], kind="stable")[: len(members)]
                    }
                    assert list(members.values()) == sorted(members.values(), reverse=True)  # strongest first
                    assert len(members) == min(np.count_nonzero(shares[:, k]), 12)


def test_numbers_in_the_drawing_are_those_of_the_names(browser, page_file, hierarchies):
    one = hierarchies[0]
    with opened(browser, page_file) as page:
        assert page.locator("#g0 .numbers text").all_text_contents() == [str(v) for v in range(one.nodes)]
        clusters(page)
        assert (shown(page, "numbers"), shown(page, "badges")) == ([None], ["1"])
        page.get_by_role("radio", name="Level 2").first.check()
        assert shown(page, "badges") == ["2"]
        badges = page.locator('#g0 [data-layer="badges"][data-at="2"] text')
        assert badges.all_text_contents() == [str(k) for k in range(len(one.levels[1]))]
        for k, medoid in enumerate(one.levels[1].medoid.tolist()):  # each stands at its own medoid
            x, y = (float(badges.nth(k).get_attribute(name)) for name in "xy")
            far = np.hypot(*(canvas(one).position - [x, y]).T)
            assert far.argmin() == medoid
        page.get_by_role("radio", name="Occlusion").first.check()
        assert (shown(page, "numbers"), shown(page, "badges")) == ([None], [])
        page.get_by_role("checkbox", name="numbers").first.uncheck()
        assert shown(page, "numbers") == []


def test_numbers_stand_aside_from_nodes_and_from_each_other(hierarchies):
    for one in hierarchies:
        ground = canvas(one)
        spots = np.array(re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)"', node_numbers(one, ground)), float)
        gaps = np.hypot(*(spots[:, None] - ground.position[None]).T)
        assert gaps.min() > 0.2 * ground.unit
        between = np.hypot(*(spots[:, None] - spots[None]).T) + 99 * np.eye(one.nodes)
        assert between.min() > 0.2 * ground.unit


def test_colours_have_a_scale_with_numbers_and_the_name_of_the_class(browser, page_file, hierarchies):
    one = hierarchies[0]
    with opened(browser, page_file) as page:
        assert page.locator("#g0 [data-scale]:visible").count() == 1
        for kind in ("gradient", "occlusion"):
            page.get_by_role("radio", name=kind.capitalize()).first.check()
            top = f"{np.abs(one.importance[kind]).max():.3g}"
            words = page.locator("#g0 [data-scale]:visible").inner_text().split("\n")
            against, low, middle, high, speaks = (word.strip() for word in words)
            assert (against, speaks) == (f"against {one.answer}", f"for {one.answer}")
            assert (low, middle, high) == (f"−{top}", "0", f"+{top}")
        page.get_by_role("radio", name="Attention").first.check()
        words = page.locator("#g0 [data-scale]:visible").inner_text()
        assert f"{one.importance['attention'].max():.3g}" in words
        assert one.answer not in words


def test_the_page_says_what_its_colours_and_words_mean(browser, page_file):
    with opened(browser, page_file) as page:
        words = page.locator("main").inner_text()
        for output in (
            "Adjacent clusters have different colours as far as seven colours allow",
            "Nodes without colour are in no kept cluster",
            "The node around which a cluster was formed",
            "The score of a cluster",
            "Components: parts of a graph with no edge between them",
            "Density: share of node pairs joined by an edge",
        ):
            assert words.count(output) == 1  # once for all graphs


def test_the_table_of_importance_names_the_class_and_says_for_or_against(hierarchies):
    one = hierarchies[0]
    page = explain_page([one])
    assert f"Importance of the nodes for {one.answer}, strongest substitution first" in page
    order = np.argsort(-np.abs(one.importance["substitution"]), kind="stable")
    for v in order[:3].tolist():
        row = page[page.index(f'<th scope="row">{one.names[v]} {v}</th>') :].split("</tr>")[0]
        assert row.endswith(f"<td>{'for' if one.importance['substitution'][v] > 0 else 'against'}</td>")
    rows = [page.index(f'<th scope="row">{one.names[v]} {v}</th>') for v in order.tolist()]
    assert rows == sorted(rows)


def test_the_focus_walks_from_node_to_node(browser, page_file, hierarchies):
    with opened(browser, page_file) as page:
        page.locator("#g0 [data-node='0']").focus()
        assert page.locator("#g0 [data-selected] h3").inner_text() == f"{hierarchies[0].names[0]} 0"
        seen = {page.evaluate("document.activeElement.dataset.node")}
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 3:
            page.keyboard.press(key)
            seen.add(page.evaluate("document.activeElement.dataset.node"))
        assert len(seen) > 3
        assert page.locator("#g0 [data-node][tabindex='0']").count() == 1  # one stop for the Tab key
        page.keyboard.press("Escape")
        assert "Hover over a node" in page.locator("#g0 [data-selected]").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1440])
def test_it_is_readable_on_phones_and_desks_by_day_and_night(browser, page_file, width, scheme):
    with opened(browser, page_file, width, scheme) as page:
        page.locator("#g0 [data-node='3']").dispatch_event("pointerenter")
        keep(page, f"explain-{width}-{scheme}")
        ink, paper = page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert contrast(ink, paper) > 10
        soft = page.locator(".lead").first.evaluate("e => getComputedStyle(e).color")
        assert contrast(soft, paper) > 4.5  # WCAG AA


def contrast(a, b):
    """WCAG's ratio of two colours as the browser writes them."""

    def light(colour):
        parts = [int(v) / 255 for v in colour[4:-1].split(",")]
        r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_hostile_names_do_nothing_but_appear(browser, hierarchies, tmp_path):
    one = hierarchies[0]
    rude = dataclasses.replace(
        one, id=RUDE, data=RUDE, classes=(RUDE, RUDE + "2"), label=RUDE, names=(RUDE,) * one.nodes, note=RUDE, text=RUDE
    )
    path = tmp_path / "rude.html"
    path.write_text(explain_page([rude, rude], title=RUDE), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.evaluate("window.hurt") is None
        assert page.locator("script").count() == 3  # the data of two graphs, and our own
        assert page.locator("img").count() == 0
        assert page.locator("#g0 h2").inner_text() == RUDE
        page.locator("#g0 [data-node='2']").dispatch_event("pointerenter")
        assert RUDE in page.locator("#g0 [data-selected] h3").inner_text()
        assert page.evaluate("window.hurt") is None


def test_a_script_that_slips_in_all_the_same_does_not_run(browser, page_file, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(page_file.read_text().replace("<main>", "<main><script>window.hurt=1</script>"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("window.hurt") is None
    page.close()


def test_data_cannot_end_its_block():
    assert not set("<>&") & set(script_data(["</script>", "<!--", "]]>", "&"]))


def test_a_graph_of_300_nodes_opens_within_two_seconds_and_six_megabytes(browser, tmp_path):
    from asapool.data import load

    graphs = load("synthetic:motifs?graphs=2&nodes=295")
    reported = explain(build(ModelConfig(hidden=16), graphs.num_features, 2, seed=0), graphs, 0)
    path = tmp_path / "large.html"
    path.write_text(explain_page([reported]), encoding="utf-8")
    assert path.stat().st_size < 6_000_000
    with opened(browser, path) as page:
        devtools = page.context.new_cdp_session(page)  # the page's own processor time: other tests may be running
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.reload()
        assert shown(page, "numbers") == shown(page, "badges") == []  # too many to read, unless asked for
        page.locator("#g0 [data-node='299']").dispatch_event("pointerenter")
        metrics = {row["name"]: row["value"] for row in devtools.send("Performance.getMetrics")["metrics"]}
        assert 0 < metrics["TaskDuration"] < 2
        keep(page, "explain-300-nodes")


def test_without_levels_the_page_says_why_and_shows_importance(browser, run_folder, tmp_path):
    _, graphs = run_folder
    reported = explain(build(ModelConfig(method="mlp", hidden=4), graphs.num_features, 2, seed=0), graphs, 5)
    path = tmp_path / "mlp.html"
    path.write_text(explain_page([reported]), encoding="utf-8")
    with opened(browser, path) as page:
        assert "no levels to show" in page.locator(".note").inner_text()
        assert (shown(page, "substitution"), shown(page, "gradient")) == ([None], [])
        assert page.get_by_role("radio", name="Level").count() == 0


def test_every_number_stands_in_a_table_too(hierarchies):
    text = explain_page(hierarchies[:1])
    one = hierarchies[0]
    for scores in one.importance.values():
        assert all(f"<td>{v:.4f}</td>" in text for v in scores)
    for level in one.levels:
        assert all(f"<td>{v:.4f}</td>" in text for v in level.kept_fitness)


def test_a_phone_is_spoken_to_as_a_phone_and_its_numbers_can_be_read(browser, page_file):
    page = browser.new_page(viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True)
    page.goto(page_file.as_uri())
    assert "Tap a node" in page.locator("#g0 [data-selected]").inner_text()
    assert page.locator(".touch:visible").count() == 1
    assert page.locator(".mouse:visible").count() == 0
    heights = page.locator("#g0 .numbers text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"""
    )
    assert min(heights) > 8.5  # pixels
    page.locator("#g0 [data-node='2']").tap()
    assert page.locator("#g0 [data-selected] h3").count() == 1
    page.close()


def test_a_drawing_can_be_saved_as_it_is_shown(browser, page_file, tmp_path):
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    with page.expect_download() as saved:
        page.locator("#g0 [data-save='svg']").click()
    root = ET.fromstring(saved.value.path().read_text())
    layers = {g.get("data-layer") for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("data-layer")}
    assert layers == {"substitution", "numbers"}
    assert "var(" not in ET.tostring(root, encoding="unicode")
    with page.expect_download() as saved:
        page.locator("#g0 [data-save='png']").click()
    with Image.open(saved.value.path()) as image:
        assert image.format == "PNG"
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)  # the page is dark, the picture is not
    page.close()


def test_tables_are_whole(browser, page_file, hierarchies):
    with opened(browser, page_file) as page:
        page.locator("#g0 details.tables summary").click()
        box = page.locator("#g0 details.tables .scroll").first
        assert box.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
        assert box.locator("tbody tr").count() == hierarchies[0].nodes
