"""How many known structural alerts `asapool motifs` recovers from a model of nci-alerts.

    python -m benchmarks.motif_recovery                 train one model per seed, write results/motif_recovery.json
    python -m benchmarks.motif_recovery --model FOLDER  measure a run that is already trained, print only
    python -m benchmarks.motif_recovery --speed FOLDER  seconds for all 4,991 molecules on one core, into the JSON
    python -m benchmarks.motif_recovery --docs          write the table of the JSON into docs/motifs.md

The classes of nci-alerts were made by RDKit's BRENK catalogue. The patterns that match at least 20 training molecules
are to be recovered by the 50 strongest fragments for the class "alert", computed on the training molecules. A fragment
recovers a pattern when in at least half of the training molecules with the fragment one contains the other and
    strict   they share at least half of their atoms together: |F ∩ P| ≥ |F ∪ P| / 2
    literal  the fragment covers half of the pattern: |F ∩ P| ≥ |P| / 2
Beside it: 50 fragments of the same table by frequency alone, by enrichment alone (labels, no model), and at random.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

import asapool
from asapool.data import GraphSet
from asapool.insight.substructures.finding import motifs
from asapool.models import checkpoint
from asapool.training import resolve, start

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "motif_recovery.json"
PAGE = ROOT / "docs" / "motifs.md"
MARK, END = "<!-- table: from results/motif_recovery.json -->\n", "<!-- end of table -->\n"
SEEDS = (0, 1, 2, 3, 4)
LEAST = 20  # training molecules with a pattern
TOP = 50
LOOKED = 200  # training molecules with a fragment that are compared with the patterns


def patterns_of(mols: list) -> dict:
    """The BRENK patterns by name, each with the molecules it matches and its matches there."""
    from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

    catalog = FilterCatalog(FilterCatalogParams(FilterCatalogParams.FilterCatalogs.BRENK))
    queries, result = {}, {}
    for g, mol in enumerate(mols):
        for entry in catalog.GetMatches(mol):
            name = entry.GetDescription()
            if name not in queries:
                queries[name] = entry.GetFilterMatches(mol)[0].filterMatch.GetPattern()
            result.setdefault(name, {})[g] = [frozenset(m) for m in mol.GetSubstructMatches(queries[name])]
    return {name: where for name, where in result.items() if len(where) >= LEAST}


def recovered(fragments: list[str], patterns: dict, mols: list, rule: str) -> dict[str, list[str]]:
    """The patterns that some fragment recovers → the fragments that do."""
    from rdkit import Chem

    result: dict[str, list[str]] = {}
    for text in fragments:
        query = Chem.MolFromSmarts(text)
        where = {}
        for g, mol in enumerate(mols):
            matches = mol.GetSubstructMatches(query)
            if matches:
                where[g] = [frozenset(m) for m in matches]
                if len(where) == LOOKED:
                    break
        for name, places in patterns.items():
            hits = sum(
                any(agrees(f, p, rule) for f in where[g] for p in places[g]) for g in where.keys() & places.keys()
            )
            if where and hits >= len(where) / 2:
                result.setdefault(name, []).append(text)
    return result


def agrees(f: frozenset, p: frozenset, rule: str) -> bool:
    """Whether one contains the other and they overlap by half."""
    if not (f <= p or p <= f):
        return False
    shared = len(f & p)
    return shared >= len(f | p) / 2 if rule == "strict" else shared >= len(p) / 2


def measure(folder: Path, graphs: GraphSet) -> dict:
    """The share of patterns that each list recovers."""
    trained = checkpoint.load(folder / "model.safetensors")
    split = json.loads((folder / "split.json").read_text())
    train = graphs.subset(np.array(split["train"]))
    from rdkit import Chem

    mols = [Chem.MolFromSmiles(text) for text in train.source_text]
    patterns = patterns_of(mols)
    began = time.perf_counter()
    result = motifs(trained, train)
    seconds = time.perf_counter() - began
    c = result.outputs.index("alert")
    everything = list(result)
    lists = {
        "strongest": [m.name for m in result.top("alert", TOP)],
        "strongest, variants too": [m.name for m in result.top("alert", TOP, variants=True)],
        "frequency": [m.name for m in sorted(everything, key=lambda m: -m.graphs)[:TOP]],
        "enrichment": [
            m.name for m in sorted(everything, key=lambda m: m.p_value[c] if m.enrichment[c] > 1 else 2)[:TOP]
        ],
        "random": [everything[i].name for i in np.random.default_rng(0).permutation(len(everything))[:TOP]],
    }
    record = {
        "method": result.method, "patterns": {name: len(where) for name, where in patterns.items()},
        "fragments": len(everything), "seconds": seconds, "lists": {},
    }  # fmt: skip
    for name, fragments in lists.items():
        record["lists"][name] = {"fragments": fragments}
        for rule in ("strict", "literal"):
            actual = recovered(fragments, patterns, mols, rule)
            record["lists"][name][rule] = {"share": len(actual) / len(patterns), "recovered": actual}
    return record


def print_record(record: dict) -> None:
    """The shares as text."""
    print(
        f"{record['method']}: {len(record['patterns'])} patterns, {record['fragments']} fragments, "
        f"{record['seconds']:.1f} s"
    )
    for name, row in record["lists"].items():
        print(f"  {name:<24} strict {row['strict']['share']:.3f}  literal {row['literal']['share']:.3f}")


def table_of(result: dict) -> str:
    """The records in Markdown: mean share of recovered patterns over seeds, and the range."""
    lists = ("strongest", "strongest, variants too", "enrichment", "frequency", "random")
    text = "| model | 50 fragments by | recovered: half of the pattern | recovered: half of both |\n|---|---|---|---|\n"
    models = dict.fromkeys(key.rpartition(", seed")[0] for key in result["runs"])
    for model in models:
        runs = [run for key, run in result["runs"].items() if key.rpartition(", seed")[0] == model]
        for name in lists:
            cells = []
            for rule in ("literal", "strict"):
                shares = [run["lists"][name][rule]["share"] for run in runs]
                cells.append(f"{np.mean(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})")
            count = "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"
            text += f"| {model}, {count} | {name} | {' | '.join(cells)} |\n"
    counts = [len(run["patterns"]) for run in result["runs"].values()]
    text += f"\nMeans over seeds (smallest to largest); {min(counts)} to {max(counts)} patterns, varying by split.\n"
    if "speed" in result:
        s = result["speed"]
        text += (
            f"`asapool.motifs` on {s['graphs']:,} molecules ({s['method']}, one thread): {s['cpu']:.0f} s of processor "
            f"time, {s['wall']:.0f} s of wall time on a machine with other jobs.\n"
        )
    return text


def write_docs() -> None:
    """Put the table between the two marks of the page."""
    before, _, rest = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{before}{MARK}\n{table_of(json.loads(RESULTS.read_text()))}\n{END}{rest.partition(END)[2]}")


def speed(folder: Path, graphs: GraphSet) -> dict:
    """Seconds for the whole set; reading the model and the molecules is not counted."""
    trained = checkpoint.load(folder / "model.safetensors")
    motifs(trained, graphs.subset(range(50)))  # compiled loops and libraries are loaded
    wall, cpu = time.perf_counter(), time.process_time()
    result = motifs(trained, graphs)
    return {
        "graphs": len(graphs), "method": result.method, "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
    }  # fmt: skip


def main() -> None:
    """Measure, and keep the records; a seed that is already there is not trained again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--methods", default="asap,asap+")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--runs", type=Path, default=Path("runs/motif-recovery"))
    parser.add_argument("--speed", type=Path)
    parser.add_argument("--docs", action="store_true")
    words = parser.parse_args()
    if words.docs:
        write_docs()
        return
    torch.set_num_threads(1)
    graphs = asapool.load("nci-alerts")
    if words.model is not None:
        record = measure(words.model, graphs)
        print_record(record)
        missed = set(record["patterns"]) - set(record["lists"]["strongest"]["strict"]["recovered"])
        print("missed:", ", ".join(sorted(missed)))
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"version": 1, "runs": {}}
    kept["machine"] = {"asapool": asapool.__version__, "torch": torch.__version__, "python": platform.python_version()}
    if words.speed is not None:
        kept["speed"] = speed(words.speed, graphs)
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        print(kept["speed"])
        return
    for method in words.methods.split(","):
        for seed in map(int, words.seeds.split(",")):
            key = f"{method}, {words.epochs} epochs, seed {seed}"
            if key in kept["runs"]:
                continue
            folder = words.runs / f"{method}-{words.epochs}-{seed}"
            if not (folder / "metrics.json").is_file():
                tables = {
                    "data": {"source": "nci-alerts"}, "split": {"kind": "scaffold", "seed": seed},
                    "model": {"method": method, "hidden": 64},
                    "train": {"epochs": words.epochs, "seed": seed, "threads": 1},
                }  # fmt: skip
                settings, _ = resolve(tables)
                start(settings, graphs, folder)
            kept["runs"][key] = measure(folder, graphs)
            print(key, file=sys.stderr)
            print_record(kept["runs"][key])
            RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
