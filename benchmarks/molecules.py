"""Molecules: asap+ and the ecfp forest on six tables, ensembles against one model, and what conformal answers cover.

    python -m benchmarks.molecules                          # trains what is missing, one thread; then the page
    python -m benchmarks.molecules --data esol --seeds 1       # a part of it
    python -m benchmarks.molecules --page                      # just the page

results/molecules/DATA.jsonl has one line per training and one per ensemble. A training that is there is not repeated; a
run that is stopped goes on where it was: members of ensembles are kept in --work until their ensemble is complete.
Splits: random and scaffold, 80/10/10, the same for all methods. Nothing is chosen on the test part.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asapool.data import GraphSet, Split
from asapool.errors import AsapoolError
from asapool.experiments.engines import InlineEngine
from asapool.experiments.ensembles import is_ensemble, resume_ensemble, train_ensemble
from asapool.experiments.execute import model_path
from asapool.experiments.store import Store
from asapool.files import read_json, write_json, write_text
from asapool.models import ModelConfig, checkpoint
from asapool.training import predict, resolve, run
from asapool.training.calibration import conformal_quantile, covered
from asapool.training.config import LATER, preset
from asapool.training.tasks import task_of
from asapool.training.trust import KEY, Trust, answers_of_tasks
from benchmarks import markdown
from benchmarks.chemprop_peer import chemprop_record
from benchmarks.measuring import machine

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "results" / "molecules", ROOT / "docs" / "molecules.md"
SETS = {
    "esol": {"target": "logSolubility", "task": "regression"},
    "lipo": {"target": "lipo", "task": "regression"},
    "bbbp": {"target": "p_np", "task": "classification"},
    "clintox": {"task": "multilabel"},
    "tox21": {"task": "multilabel"},
    "hiv": {"target": "HIV_active", "task": "classification"},
}
PACKED = {"hiv"}  # tables that are .csv.gz
SPLITS = {"random": "stratified", "scaffold": "scaffold"}
METHODS = ("asap+", "ecfp")
DESCRIPTORS = {"asap+": "asap+ with descriptors", "chemprop": "chemprop with descriptors"}
MEMBERS, SEEDS, COVERAGE = 5, 3, 0.9
TIMED = (3, 8)  # epochs of the two training runs between which an epoch is timed
SCORES = {"regression": "rmse", "classification": "roc_auc", "multilabel": "roc_auc"}
LABELS = {"rmse": "RMSE", "roc_auc": "ROC-AUC"}


def main() -> None:
    """Train what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(SETS), help="which of the tables")
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--members", type=int, default=MEMBERS)
    parser.add_argument("--root", type=Path, default=Path(os.environ.get("ASAPOOL_DATA", "../shared/datasets")))
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "molecules", help="models of unfinished ensembles")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--chemprop", default="chemprop", help="its program, for --methods chemprop")
    parser.add_argument("--epochs", type=int, help="fewer epochs, to try the script; such results are marked")
    parser.add_argument("--page", action="store_true", help="train nothing")
    parser.add_argument("--time", action="store_true", help="measure an epoch of asap+ and of chemprop instead")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.time:
        timed = chosen.results / "time.json"
        for data in chosen.data.split(","):
            write_json(timed, (read_json(timed) if timed.exists() else {}) | {data: time_epochs(chosen, data)})
    elif not chosen.page:
        # seeds are outermost, so that every cell has a number early
        for seed in range(chosen.seeds):
            for data in chosen.data.split(","):
                for split in chosen.splits.split(","):
                    for method in chosen.methods.split(","):
                        work_on(chosen, data, split, method, seed)
    if chosen.results == RESULTS:
        write_text(PAGE, page(RESULTS))
        print(f"wrote {PAGE}")


def work_on(chosen: argparse.Namespace, data: str, split: str, method: str, seed: int) -> None:
    """Train one method on one split, if its records are not there."""
    file = chosen.results / f"{data}.jsonl"
    plain = {name: key for key, name in DESCRIPTORS.items()}.get(method, method)
    members = chosen.members if plain == "asap+" else 1  # a forest is an ensemble already
    wanted = {"data": data, "split": split, "method": method, "seed": seed, "epochs_given": chosen.epochs}
    if any(wanted.items() <= r.items() and r["members"] == members and current(r) for r in records(file)):
        return
    tables: dict[str, dict[str, Any]] = {
        "data": {
            "source": source(chosen.root, data), "skip_invalid": True, **SETS[data],
            "rdkit_descriptors": method == DESCRIPTORS["asap+"],
        },
        "split": {"kind": SPLITS[split], "val": 0.1, "test": 0.1, "seed": seed},
        "model": {"method": "asap+" if plain == "chemprop" else plain},
        "train": {"seed": 100 * seed, "threads": 1, "epochs": chosen.epochs},
    }  # fmt: skip
    folder = chosen.work / f"{data}-{split}-{method.replace(' ', '-')}-{seed}" / ("short" if chosen.epochs else "full")
    print(f"{data}, {split} split, {method}, seed {seed}", flush=True)
    try:
        lines = (
            [peer(chosen, tables, folder, seed, method == DESCRIPTORS["chemprop"])]
            if plain == "chemprop"
            else list(trained(tables, folder, members))
        )
    except AsapoolError as error:
        print(f"  failed: {error}", flush=True)
        return
    append(file, [wanted | line for line in lines])
    for line in lines:
        held = "" if line["coverage"] is None else f", covered {line['coverage']:.3f}"
        print(f"  {line['members']} member(s): {line['score']:.4f}{held}", flush=True)


def source(root: Path, data: str) -> str:
    """The file of a table."""
    return str(root / "molecules" / f"{data}.csv{'.gz' if data in PACKED else ''}")


def time_epochs(chosen: argparse.Namespace, data: str) -> dict[str, Any]:
    """Processor seconds of an epoch, on both sides as the difference of a longer and a shorter training."""
    tables: dict[str, dict[str, Any]] = {
        "data": {"source": source(chosen.root, data), "skip_invalid": True, **SETS[data]},
        "split": {"kind": "stratified", "val": 0.1, "test": 0.1, "seed": 0},
        "model": {"method": "asap+", "backend": "fused"},  # with so few epochs "auto" would not compile anything
    }  # fmt: skip
    ours, theirs = [], []
    for epochs in TIMED:
        settings, graphs = resolve(tables | {"train": {"seed": 0, "threads": 1, "epochs": epochs}})
        split = settings.split.make(graphs)
        with tempfile.TemporaryDirectory() as folder:
            run.start(settings, graphs, Path(folder) / "warm", overwrite=True)
            begin = time.process_time()
            run.start(settings, graphs, Path(folder) / "run", overwrite=True)
            ours.append(time.process_time() - begin)
            before = children()
            chemprop_record(chosen.chemprop, graphs, split, Path(folder), 0, SCORES[graphs.target.kind], epochs)
            theirs.append(children() - before)
        print(f"{data}, {epochs} epochs: asap+ {ours[-1]:.1f} s, chemprop {theirs[-1]:.1f} s", flush=True)
    steps = TIMED[1] - TIMED[0]
    return {
        "asap+": (ours[1] - ours[0]) / steps, "chemprop": (theirs[1] - theirs[0]) / steps, "epochs": list(TIMED),
        "asap+ trainings": ours, "chemprop trainings": theirs, "machine": machine(),
    }  # fmt: skip


def children() -> float:
    """Processor seconds of all child processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peer(
    chosen: argparse.Namespace, tables: dict[str, Any], folder: Path, seed: int, descriptors: bool
) -> dict[str, Any]:
    """The record of chemprop on the same split."""
    settings, graphs = resolve(tables)
    split, metric = settings.split.make(graphs), SCORES[graphs.target.kind]
    record = chemprop_record(chosen.chemprop, graphs, split, folder, seed, metric, chosen.epochs, descriptors)
    return record | {"machine": machine()}


def trained(tables: dict[str, Any], folder: Path, members: int) -> Iterator[dict[str, Any]]:
    """One record per training, and one of the ensemble."""
    settings, graphs = resolve(tables)
    split = settings.split.make(graphs)
    if members == 1:
        metrics = run.start(settings, graphs, folder, overwrite=True)
        yield record_of(checkpoint.load(folder), graphs, split, metrics["seconds"] / max(metrics["epochs"], 1), 1, 0)
        return
    if is_ensemble(folder):
        resume_ensemble(folder, InlineEngine())
    else:
        train_ensemble(settings, graphs, folder, members, InlineEngine())
    each = list(Store.read(folder / "members").values())
    for number, member in enumerate(sorted(each, key=lambda one: one.run.seed)):
        loaded = checkpoint.load(model_path(folder / "members" / "models", member.run))
        seconds = statistics.median(epoch["seconds"] for epoch in member.history or [])
        yield record_of(loaded, graphs, split, seconds, 1, number)
    yield record_of(checkpoint.load(folder), graphs, split, None, members, None)


def record_of(
    loaded: Any, graphs: GraphSet, split: Split, seconds: float | None, members: int, member: int | None
) -> dict[str, Any]:
    """The scores of a model on the test part, and how many of its conformal answers hold the truth."""
    target, task = loaded.target, task_of(loaded.target)
    y, p = graphs.y[split.test], predict(loaded.model, graphs, split.test)
    trust = Trust.from_dict(loaded.extra[KEY])
    hits, sizes = [], []
    for part, one in zip(task.parts(y, p, target), trust.tasks, strict=True):
        q = conformal_quantile(one.scores, COVERAGE)
        hits.append(covered(part.y, part.p, q))
    for view, one in zip(answers_of_tasks(p, target), trust.tasks, strict=True):
        q = conformal_quantile(one.scores, COVERAGE)
        sizes.append(2 * q if view.ndim == 1 else float((1 - view <= q).sum(axis=1).mean()))
    name = SCORES[target.kind]
    score = task.mean(name, y, p, target)
    trivial = task.mean(name, y, np.repeat(task.trivial(graphs.y[split.train], target)[None], len(y), 0), target)
    return {
        "members": members, "member": member, "metric": name, "score": score, "trivial": trivial,
        "scores": {metric: task.mean(metric, y, p, target) for metric in task.metrics},
        "coverage": float(np.concatenate(hits).mean()), "answers": int(sum(map(len, hits))),
        "answer_size": float(np.mean([s for s in sizes if np.isfinite(s)] or [np.nan])),
        "seconds_per_epoch": seconds, "parts": [len(split.train), len(split.val), len(split.test)],
        "config": loaded.config.to_dict(), "train": loaded.summary.get("train"), "machine": machine(),
    }  # fmt: skip


def records(file: Path) -> list[dict[str, Any]]:
    """The records of a file; a line that a kill cut short is left out."""
    result = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            result.append(json.loads(line))
        except ValueError:
            continue
    return result


def append(file: Path, lines: list[dict[str, Any]]) -> None:
    """Add lines in one write, and see them on the disk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    torn = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    with file.open("a") as out:
        out.write("\n" * torn + "".join(json.dumps(line) + "\n" for line in lines))
        out.flush()
        os.fsync(out.fileno())


def page(results: Path) -> str:
    """docs/molecules.md."""
    lines = [HEAD]
    for split in SPLITS:
        lines += [f"## {split.capitalize()} split\n", *table(results, split), ""]
    lines += [PEER, *peer_table(results), ""]
    timed = results / "time.json"
    if timed.exists():
        lines += [TIME, "| data | asap+ | chemprop |", "|---|---|---|"]
        lines += [f"| {d} | {t['asap+']:.2f} s | {t['chemprop']:.2f} s |" for d, t in read_json(timed).items()] + [""]
    return "\n".join([*lines, TAIL])


def table(results: Path, split: str) -> list[str]:
    """One row per data set: mean over seeds, ± the deviation over them."""
    head = ["data", "score", "trivial", "ecfp", "asap+", "ensemble", "covered", "by the ensemble", "splits"]
    rows = [head]
    for data in SETS:
        kinds = by_kind(results, data, split)
        if not kinds["single"]:
            continue
        single, joined = kinds["single"], kinds["ensemble"]
        seeds = {r["seed"] for r in single}
        forest = [r for r in kinds["ecfp"] if r["seed"] in seeds]
        cells = [
            (single, "trivial"), (forest, "score"), (single, "score"), (joined, "score"), (single, "coverage"),
            (joined, "coverage"),
        ]  # fmt: skip
        numbers = [mean(records, name, len(seeds)) for records, name in cells]
        rows.append([marked(data, single), LABELS[single[0]["metric"]], *numbers, str(len(seeds))])
    return [markdown.table(rows[0], rows[1:])]


def peer_table(results: Path) -> list[str]:
    """chemprop beside asap+ and the ensemble, on the scaffold splits of both, with the same inputs."""
    rows = [["data", "inputs", "score", "chemprop", "asap+", "ensemble", "splits"]]
    for data in SETS:
        for inputs, ours, theirs in (("graph", "asap+", "chemprop"), ("and descriptors", *DESCRIPTORS.values())):
            kinds = by_kind(results, data, "scaffold", ours, theirs)
            seeds = {r["seed"] for r in kinds["chemprop"]} & {r["seed"] for r in kinds["single"]}
            if seeds:
                shared = {kind: [r for r in some if r["seed"] in seeds] for kind, some in kinds.items()}
                scores = [mean(shared[kind], "score") for kind in ("chemprop", "single", "ensemble")]
                label = LABELS[shared["single"][0]["metric"]]
                rows.append([marked(data, shared["single"]), inputs, label, *scores, str(len(seeds))])
    return [markdown.table(rows[0], rows[1:])]


def marked(data: str, single: list[dict[str, Any]]) -> str:
    """The name of the data set, with a star if some of its models were trained with earlier default settings."""
    return data if all(map(current, single)) else f"{data} *"


def current(record: dict[str, Any]) -> bool:
    """Whether a record is of an asap+ with the default settings of today, or of another method."""
    if not record["method"].startswith("asap+"):
        return True
    usual = preset("", "asap+", sum(record["parts"]), SETS[record["data"]]["task"])
    config = ModelConfig(method="asap+", **usual["model"]).to_dict()
    return record["config"] | {"backend": ""} == config | {"backend": ""} and all(
        record["train"].get(name, LATER.get(name)) == value for name, value in usual["train"].items()
    )


def newest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without those of earlier default settings, where the same split was trained since then."""
    renewed = {split_of(r) for r in records if current(r)}
    return [r for r in records if current(r) or split_of(r) not in renewed]


def split_of(record: dict[str, Any]) -> tuple[str, str, int]:
    """Which method was trained on which split."""
    return record["method"], record["split"], record["seed"]


def by_kind(
    results: Path, data: str, split: str, ours: str = "asap+", theirs: str = "chemprop"
) -> dict[str, list[dict[str, Any]]]:
    """The records of a data set with full training: single models and ensembles of asap+, ecfp, chemprop."""
    everything = newest(records(results / f"{data}.jsonl"))
    full = [r for r in everything if r["split"] == split and r["epochs_given"] is None]
    return {
        "single": [r for r in full if r["method"] == ours and r["members"] == 1],
        "ensemble": [r for r in full if r["method"] == ours and r["members"] > 1],
        "ecfp": [r for r in full if r["method"] == "ecfp"],
        "chemprop": [r for r in full if r["method"] == theirs],
    }


def mean(records: list[dict[str, Any]], name: str, splits: int = 0) -> str:
    """Mean over the seeds (each the mean of its training runs) ± the deviation; their number if below `splits`."""
    by_seed: dict[int, list[float]] = {}
    for record in records:
        if record[name] is not None:
            by_seed.setdefault(record["seed"], []).append(record[name])
    values = [statistics.fmean(one) for one in by_seed.values()]
    if not values:
        return "–"
    text = f"{statistics.fmean(values):.3f}" + (f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else "")
    return text + (f" ({len(values)})" if len(values) < splits else "")


HEAD = """# Molecules

`asap+` with default settings compared with the `ecfp` forest and with chemprop 2 with default settings, on the same
splits (80/10/10), one thread. RMSE: lower is better; ROC-AUC: higher is better, mean over tasks. *asap+* is the mean of
five models with different seeds, *ensemble* one model of the five; ± is the deviation over several splits. On hiv
and on random splits a single model was trained. A number in parentheses is the number of splits, where it is smaller
than in the last column.

*covered* is the share of test graphs whose conformal set or interval at 90 % contains the truth
([uncertainty](uncertainty.md)). The guarantee is for graphs like those in the validation part. Random splits satisfy
this, up to the sampling error of parts of about a hundred graphs; a scaffold split puts other scaffolds into the test
part.

A star: all or some models were trained with earlier default settings of `asap+`.

This page is written by `python -m benchmarks.molecules` from `results/molecules/`, one line per training run.
"""
PEER = """## Compared with chemprop

chemprop 2 with its default settings, one model per split, on scaffold splits that both were trained on. The rows with
descriptors give both programs numbers about the whole molecule besides the graph: `asapool train --rdkit-descriptors`
(the fast properties of RDKit) and `chemprop train --molecule-featurizers rdkit_2d` (all of its 2D descriptors).
"""
TIME = """## Time of an epoch

Processor seconds of one epoch on one core, with the defaults of both.
"""
TAIL = """## Measure it again

    python -m benchmarks.molecules          # one thread, several hours; can be stopped and resumed
    python -m benchmarks.molecules --methods chemprop --chemprop ENV/bin/chemprop
    python -m benchmarks.molecules --time --data esol,lipo --chemprop ENV/bin/chemprop
"""

if __name__ == "__main__":
    main()
