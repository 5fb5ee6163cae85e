"""Figures of the theory: what they show, and that they are written whole."""

import json

import pytest

from asapool.errors import WriteError
from asapool.insight.drawing.figure import save_figures
from asapool.reports import theory_figures as figures


@pytest.fixture
def report(theory_report):
    return theory_report[0]


def drawn(figure):
    """Lines and dots by their names, as {x: y}."""
    (axes,) = figure.axes
    lines = {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in axes.lines}
    return lines | {dots.get_label(): dict(dots.get_offsets().tolist()) for dots in axes.collections}


def test_the_tree_figure_shows_formula_census_and_selections(report):
    lines = drawn(figures.all_figures(report)["theory-trees"])
    assert lines["ASAP: exact k*"][9] == pytest.approx(4 / 9)
    assert lines["TopK, SAGPool: exact k*"][9] == pytest.approx(8 / 9)
    assert lines["TopK, SAGPool: as printed"][10] == pytest.approx(0.8)
    for name in ("ASAP", "TopK, SAGPool"):
        assert set(lines[f"{name}: all trees"]) == set(range(2, 10)) == set(lines[f"{name}: all selections"])
        for kind in ("all trees", "all selections"):
            assert all(k == lines[f"{name}: exact k*"][N] for N, k in lines[f"{name}: {kind}"].items())


def test_the_path_figure(report):
    lines = drawn(figures.all_figures(report)["theory-paths"])
    assert lines["ASAP: exact k*"][8] == 0.25
    assert lines["ASAP: as printed"][8] == pytest.approx(0.375)
    assert lines["TopK, SAGPool: all selections"][7] == pytest.approx(4 / 7)


def test_the_learning_curves_and_their_bounds(report):
    (axes,) = figures.all_figures(report)["theory-extremum"].axes
    named = {line.get_label() for line in axes.lines if line.get_gid() != "level"}
    assert named == {f"{a}: {b}" for a in ("LEConv", "GCN") for b in ("above its neighbours", "local maximum")}
    levels = sorted(round(line.get_ydata()[0], 3) for line in axes.lines if line.get_gid() == "level")
    assert levels == [0.5, 0.667]


def test_the_tree_picture_fills_the_chosen_nodes():
    (axes,) = figures.tree_figure().axes
    assert [len(dots.get_offsets()) for dots in axes.collections] == [4, 5, 3, 5]  # chosen, others; N = 9, then N = 8


def test_figures_are_real_files_without_a_browser_and_the_same_each_time(tmp_path):
    files = save_figures({"a": figures.tree_figure()}, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg"]
    first = {file.suffix: file.read_bytes() for file in files}
    assert first[".png"].startswith(b"\x89PNG")
    assert first[".pdf"].startswith(b"%PDF")
    assert b"N = 9" in first[".svg"]  # text stays text
    again = save_figures({"a": figures.tree_figure()}, tmp_path)
    assert {file.suffix: file.read_bytes() for file in again} == first


def test_verdicts_are_the_report(report, tmp_path):
    path = figures.write_verdicts(report, tmp_path)
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.to_dict()))
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(WriteError, match=r"taken: cannot make a folder for figures"):
        figures.make_folder(tmp_path / "taken")
