"""`asapool results`: what a folder of training runs holds, merged and compared."""

import json
from pathlib import Path

import pytest

from asapool.errors import ConfigError, DataError
from asapool.experiments.compact import write_compact
from asapool.experiments.store import Store
from tests.cli.commands import call
from tests.experiments.made_up import plan_of
from tests.experiments.test_overview import PLAN, VALUES, store_of

ROOT = Path(__file__).parents[2]


def test_a_folder_is_shown_as_a_table(tmp_path):
    output = call("results", store_of(tmp_path, PLAN, VALUES)).stdout
    for words in ("table2: accuracy in percent", "asap", "70.00", "14.14", "10.00", "topk", "2 (1 failed)"):
        assert words in output
    plain = json.loads(call("results", tmp_path, "--json").stdout)[str(tmp_path)]
    assert [s["names"] for s in plain["groups"]] == [["table2: asap"], ["table2: topk"]]
    assert [claim["table"] for claim in plain["claims"]] == ["table2"] * 4


def test_the_verdicts_on_the_papers_claims_come_first():
    """The committed training runs have no plans: their rows and verdicts follow from the plans of asapool."""
    lines = call("results", ROOT / "results").stdout.splitlines()
    assert lines[0].rstrip().endswith("results: the paper's claims")
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    start = page.index("## The paper's claims")
    rows = [line.split(" | ")[:2] for line in page[start:].splitlines() if "**" in line][:11]
    for (claim, verdict), line in zip(rows, lines[4:15], strict=True):
        assert claim.removeprefix("| ") in line
        assert verdict.strip("*") in line
    assert any(line.split()[1:4] == ["DD", "│", "asap"] for line in lines[15:])


def test_two_folders_are_compared_and_merged(tmp_path):
    a = store_of(tmp_path / "a", PLAN, VALUES)
    same = {("asap", "NCI1"): VALUES["asap", "NCI1"]}
    b = store_of(tmp_path / "b", plan_of(("asap", "more"), ("NCI1",)), same)
    output = call("results", a, b, "--compare").stdout
    assert "+0.00" in output
    assert "no fold differs" in output
    plain = json.loads(call("results", a, b, "--compare", "--json").stdout)
    assert [(d["name"], d["test"]["n"]) for d in plain["differences"]] == [("table2: asap", 6)]
    output = call("results", a, b, "--merge", tmp_path / "all")
    assert f"9 records were added to {tmp_path / 'all'}" in output.stderr
    assert "2 (1 failed)" in output.stdout


def test_reproduce_carries_on_from_committed_results(tmp_path):
    """Compact records have no curves and no probabilities; tables, report and overview do without."""
    smoke = ("reproduce", "table-edges", "--smoke", "--methods", "absent", "--datasets", "NCI1", "--engine", "inline")
    call(*smoke, "--out", tmp_path / "first", "--no-report")
    records = Store.read(tmp_path / "first")
    (tmp_path / "results").mkdir()
    write_compact(tmp_path / "results" / "tiny.jsonl", list(records.values())[1:])  # one training is missing
    output = call("results", tmp_path / "results", "--merge", tmp_path / "second")
    assert f"{len(records) - 1} records were added to {tmp_path / 'second'}" in output.stderr
    output = call(*smoke, "--out", tmp_path / "second")
    assert f"{len(records) - 1} of {len(records)} training runs were already finished" in output.stderr
    for name in ("table-edges.md", "table-edges.csv", "table-edges.json"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert "report.html" in call("report", tmp_path / "second").stdout
    assert call("results", tmp_path / "second").stdout.count("│ absent") == 1


def test_mistakes_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(DataError, match=r"contains no runs\.jsonl"):
        call("results", tmp_path)
    with pytest.raises(ConfigError, match="--compare takes two folders"):
        call("results", tmp_path, "--compare")
