"""`asapool theory`: words in, verdicts out."""

import json
import sys

import pytest
from typer.testing import CliRunner

from asapool.cli.main import app
from asapool.errors import MissingExtraError, WriteError
from asapool.insight.drawing.figure import FORMATS

run = CliRunner()


@pytest.fixture
def report(theory_report):
    return theory_report[0]


@pytest.fixture
def ready(report, monkeypatch):
    """The checks themselves are done already."""
    monkeypatch.setattr("asapool.theory.report.verify", lambda max_nodes, progress: report)


def test_tables_and_verdicts_on_standard_output(ready):
    result = run.invoke(app, ["theory"])
    assert result.exit_code == 0, result.output
    for words in ("Largest n*_h among all trees", "Lemma 2", "holds as corrected", "P[i, i]", "Misprints"):
        assert words in result.stdout
    assert "all checks as documented" in result.stdout
    assert "wrote" not in result.output


def test_json_is_the_report_and_files_are_written(ready, tmp_path):
    result = run.invoke(app, ["theory", "--json", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["sound"] is True
    assert json.loads((tmp_path / "out" / "verdicts.json").read_text()) == answer
    names = {file.name for file in (tmp_path / "out").iterdir()}
    figures = {f"theory-{name}.{kind}" for name in ("trees", "paths", "extremum", "optimum") for kind in FORMATS}
    assert names == {"verdicts.json", *figures}
    assert "wrote" in result.stderr


def test_the_whole_way_and_the_same_seed_gives_the_same_report(report):
    result = run.invoke(app, ["theory", "--max-nodes", "9", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(json.dumps(report.to_dict()))


def test_a_check_that_fails_ends_with_code_1(ready, monkeypatch):
    monkeypatch.setattr("asapool.theory.report.KNOWN_TO_FAIL", ())
    result = run.invoke(app, ["theory"])
    assert result.exit_code == 1
    assert "NOT as documented" in result.stdout


def test_a_file_in_the_way_is_reported_before_any_work(tmp_path):
    (tmp_path / "taken").write_text("")
    result = run.invoke(app, ["theory", "-o", str(tmp_path / "taken")])
    assert isinstance(result.exception, WriteError)


@pytest.mark.parametrize("wrong", [["--max-nodes", "7"], ["--max-nodes", "40"], ["--max-nodes", "many"]])
def test_sizes_out_of_range_are_refused(wrong):
    assert run.invoke(app, ["theory", *wrong]).exit_code == 2


def test_a_missing_matplotlib_is_reported_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run.invoke(app, ["theory", "-o", str(tmp_path)])
    assert isinstance(result.exception, MissingExtraError)
    assert str(result.exception) == 'matplotlib is not installed. Run: pip install "asapool[plot]"'
