"""Figures: what they show, and that they are written whole."""

import json

import pytest

from asapool.errors import DataError
from asapool.theory import figures


def test_the_tree_figure_shows_formula_census_and_selections(report):
    figure = figures.all_figures(report)["theory-trees"]
    lines = {trace.name: dict(zip(trace.x, trace.y, strict=True)) for trace in figure.data}
    assert lines["ASAP: exact k*"][9] == pytest.approx(4 / 9)
    assert lines["TopK, SAGPool: exact k*"][9] == pytest.approx(8 / 9)
    assert lines["TopK, SAGPool: as printed"][10] == pytest.approx(0.8)
    for name in ("ASAP", "TopK, SAGPool"):
        assert set(lines[f"{name}: all trees"]) == set(range(2, 10)) == set(lines[f"{name}: all selections"])
        for found in ("all trees", "all selections"):
            assert all(k == lines[f"{name}: exact k*"][N] for N, k in lines[f"{name}: {found}"].items())


def test_the_path_figure(report):
    figure = figures.all_figures(report)["theory-paths"]
    lines = {trace.name: dict(zip(trace.x, trace.y, strict=True)) for trace in figure.data}
    assert lines["ASAP: exact k*"][8] == 0.25
    assert lines["ASAP: as printed"][8] == pytest.approx(0.375)
    assert lines["TopK, SAGPool: all selections"][7] == pytest.approx(4 / 7)


def test_the_learning_curves_and_their_bounds(report):
    figure = figures.all_figures(report)["theory-extremum"]
    assert {trace.name for trace in figure.data} == {
        f"{layer}: {task}" for layer in ("LEConv", "GCN") for task in ("above its neighbours", "local maximum")
    }
    assert sorted(round(shape.y0, 3) for shape in figure.layout.shapes) == [0.5, 0.667]


def test_the_tree_picture_fills_the_chosen_nodes():
    figure = figures.tree_figure()
    assert [len(trace.x) for trace in figure.data] == [4, 5, 3, 5]  # chosen, others; N = 9, then N = 8


def test_without_a_browser_pages_are_written(report, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    files = figures.write_figures({"theory-trees": figures.all_figures(report)["theory-trees"]}, tmp_path / "new")
    assert [file.name for file in files] == ["theory-trees.html"]
    assert "Plotly.newPlot" in files[0].read_text()
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["theory-trees.html"]


def test_a_browser_that_does_not_start_is_the_same(report, tmp_path, monkeypatch):
    def fail(**options):
        raise RuntimeError("no Chromium")

    monkeypatch.setattr("plotly.io.write_images", fail)
    files = figures.write_figures({"a": figures.tree_figure()}, tmp_path)
    assert [file.name for file in files] == ["a.html"]


def test_what_is_drawn_appears_whole(tmp_path, monkeypatch):
    def draw(fig, file, **options):
        assert all(part.parent.name.startswith(".drawing-") for part in file)
        for part in file:
            part.write_bytes(b"picture")

    monkeypatch.setattr(figures, "find_spec", lambda name: object())
    monkeypatch.setattr("plotly.io.write_images", draw)
    files = figures.write_figures({"a": figures.tree_figure()}, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "a.svg"] == sorted(file.name for file in files)


def test_verdicts_are_the_report(report, tmp_path):
    path = figures.write_verdicts(report, tmp_path)
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.to_dict()))
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match=r"taken: cannot be a folder for figures"):
        figures.make_folder(tmp_path / "taken")
