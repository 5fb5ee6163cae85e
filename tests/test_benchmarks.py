"""Sentences of docs/performance.md that benchmarks work out, by hand, and the speeds in the README."""

import json
from pathlib import Path

from asapool.models import ModelConfig
from asapool.training.config import preset
from benchmarks.changes import changes
from benchmarks.other_sections import scaling_section

ROOT = Path(__file__).parents[1]
MACHINE = {"cpu": "abacus", "cores": 1, "python": "3.11", "torch": "2", "torch_geometric": "2",
           "numba": "0", "commit": "c", "load": 0.0}  # fmt: skip


def test_growth_is_computed_from_the_fastest_size_too():
    def run(side, edges, ns):
        return {"side": side, "edges": edges, "seconds": 1.0, "nanoseconds_per_edge": ns, "peak_bytes": 2**30}

    per_edge = {10_000: 500, 100_000: 300, 1_000_000: 200, 10_000_000: 360}
    runs = [run("asapool", edges, ns) for edges, ns in per_edge.items()]
    runs += [run("asapool, memory kept", edges, ns - 100) for edges, ns in per_edge.items()]
    output = scaling_section({"runs": runs, "machine": MACHINE})
    assert (
        "From 100,000 to 10,000,000 edges the time per edge grows 1.20× (goal: at most 1.5×), or 1.30× after" in output
    )
    assert "from 1,000,000 edges, where the time per edge is lowest, it grows 1.80×, or 2.60×." in output


def measured(median, spread=0.1):
    return {"median": median, "quartile_1": median - spread, "quartile_3": median + spread, "runs": 9}


def test_changes_beyond_the_noise_are_listed_and_times_only_on_the_same_processor():
    def result(cpu, ms, ratio):
        run = {"data": "NCI1", "threads": 1, "milliseconds": {"asapool": measured(ms)}}
        return {"runs": [run | {"times_faster_than_pyg": {"asapool": measured(ratio)}}], "machine": {"cpu": cpu}}

    before = result("abacus", 20.0, 7.0)
    slower = [str(change) for change in changes(before, result("abacus", 24.0, 6.0))]
    assert slower == [
        "runs / data NCI1, threads 1 / milliseconds / asapool: 20 → 24 (1.20 × worse)",
        "runs / data NCI1, threads 1 / times_faster_than_pyg / asapool: 7 → 6 (1.17 × worse)",
    ]
    assert changes(before, result("abacus", 20.15, 7.1)) == []
    elsewhere = changes(before, result("slide rule", 99.0, 9.0))
    assert [(change.better, change.now) for change in elsewhere] == [(True, 9.0)]


def test_the_page_of_molecules_sums_up_its_records(tmp_path):
    from benchmarks import molecules

    usual = preset("", "asap+", 1128, "regression")
    today = {"config": ModelConfig(method="asap+", **usual["model"]).to_dict(), "train": usual["train"]}

    def record(seed, method, members, score, covered, epochs=None):
        return today | {
            "data": "esol", "split": "random", "method": method, "seed": seed, "epochs_given": epochs, "metric": "rmse",
            "members": members, "score": score, "trivial": 2.0, "coverage": covered, "seconds_per_epoch": 0.5,
            "parts": [902, 113, 113],
        }  # fmt: skip

    file = tmp_path / "esol.jsonl"
    molecules.append(file, [record(0, "asap+", 1, 0.8, 0.9), record(0, "asap+", 1, 1.0, 0.9)])
    with file.open("a") as out:
        out.write('{"data": "esol", "spl')  # a kill while writing
    molecules.append(file, [record(1, "asap+", 1, 1.1, 0.8), record(0, "asap+", 5, 0.7, 0.91)])
    molecules.append(file, [record(0, "ecfp", 1, 1.2, 0.88), record(0, "asap+", 1, 9.0, 0.1, epochs=1)])
    molecules.append(file, [record(0, "chemprop", 1, 0.95, None), record(2, "ecfp", 1, 7.0, 0.88)])  # no asap+ there
    old = record(1, "asap+", 1, 8.0, 0.9) | {"train": usual["train"] | {"epochs": 7}}
    molecules.append(file, [old])  # earlier default settings: not counted beside those of today
    assert len(molecules.records(file)) == 9
    molecules.append(file, [r | {"split": "scaffold"} for r in molecules.records(file)])
    rows = [line for line in molecules.page(tmp_path).splitlines() if line.startswith("| esol")]
    # seeds 0 and 1 have the means 0.9 and 1.1; the shortened run does not count; (1) is a single split
    numbers = "2.000 ± 0.000 | 1.200 (1) | 1.000 ± 0.141 | 0.700 (1) | 0.850 ± 0.071 | 0.910 (1)"
    assert rows[0] == f"| esol | RMSE | {numbers} | 2 |"
    assert rows[1] == rows[0]
    assert rows[2:] == ["| esol | graph | RMSE | 0.950 | 0.900 | 0.700 | 1 |"]  # chemprop has seed 0 alone
    described = [
        r | {"split": "scaffold", "method": molecules.DESCRIPTORS[r["method"]], "score": r["score"] / 2}
        for r in molecules.records(file)
        if r["split"] == "scaffold" and r["method"] in molecules.DESCRIPTORS
    ]
    molecules.append(file, described)
    more = [line for line in molecules.page(tmp_path).splitlines() if line.startswith("| esol")]
    assert more == [*rows, "| esol | and descriptors | RMSE | 0.475 | 0.450 | 0.350 | 1 |"]


def test_the_page_of_speed_is_that_of_the_committed_results():
    from benchmarks import page

    assert page.PAGE.read_text() == page.page()


def test_the_speeds_in_the_readme_are_those_of_the_results():
    files = [
        ROOT / "benchmarks" / "results" / f"{name}.json" for name in ("step", "step-repeat", "step-intel", "step-epyc")
    ]
    runs = [run for file in files for run in json.loads(file.read_text())["runs"]]
    readme = (ROOT / "README.md").read_text()
    for side in ("asapool paper", "asapool drop-in"):
        medians = [run["times_faster_than_pyg"][side]["median"] for run in runs]
        assert readme.count(f"{min(medians):.1f} to {max(medians):.1f}") == 2  # in the table and in the text
