"""Model files with a correct checksum and wrong content: each loads and predicts, or gives one sentence.

python -m tests.models.fuzz_checkpoint 20000 0 --write
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as pack_tensors

from asapool.data import load
from asapool.errors import AsapoolError
from asapool.models import ModelConfig, build, checkpoint
from asapool.training import TrainConfig, fit
from asapool.training.predictions import predict_source

JUNK = [
    None, True, False, 0, -1, 1, 2, 3, 10**6, 10**9, 10**30, -(10**30), 0.5, -0.5, 1e308, float("nan"), float("inf"),
    "", "asap", "mlp", "diffpool", "set2set", "majority", "labels", "smiles", "degree", "x" * 300, "\ud800", [], [[]],
    [None], [[None, 1]], [0.5], [0.5, 0.5, 0.5], ["a", "a"], {}, {"a": 1}, [[["C"]]], "auto", "fused",
]  # fmt: skip
DTYPES = [torch.float16, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool]


def bases(folder: Path):
    """Small trained models of several kinds, each as (content, weights, source that it predicts)."""
    table, lines = folder / "molecules.csv", folder / "graphs.jsonl"
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCS"]
    table.write_text("id,smiles,label\n" + "".join(f"m{k},{s},{'ab'[k % 2]}\n" for k, s in enumerate(smiles)))
    rows = [{"edges": [[0, 1], [1, 2]], "nodes": ["C", "CN"[k % 2], "O"], "label": "ab"[k % 2]} for k in range(8)]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = []
    for source in (table, lines):
        graphs = load(source)
        for method in ("asap", "topk", "none", "mlp", "set2set", "diffpool", "majority"):
            config = ModelConfig(method=method, hidden=4, levels=2, backend="reference")
            model = build(config, graphs.num_features, graphs.num_classes, seed=0, typical_nodes=4)
            if method == "majority":
                parts = type("Parts", (), {"train": range(8), "val": []})
                fit(model, graphs, parts, TrainConfig())
            file = folder / "base.safetensors"
            checkpoint.save(file, model, classes=graphs.class_names, recipe=graphs.recipe, fingerprint="abc")
            with safe_open(file, framework="pt") as opened:
                content = json.loads(opened.metadata()[checkpoint.KEY])
                weights = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
            made.append((content, weights, source))
    return made


def change_content(content, draw):
    """Replace, remove or add one entry somewhere in the content."""
    place = content
    while True:
        if isinstance(place, dict) and place:
            key = draw.choice(sorted(place))
        elif isinstance(place, list) and place:
            key = draw.randrange(len(place))
        else:
            return
        if isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.7:
            place = place[key]
            continue
        kind = draw.random()
        if kind < 0.7:
            place[key] = copy.deepcopy(draw.choice(JUNK))
        elif kind < 0.85:
            del place[key]
        elif isinstance(place, dict):
            place[draw.choice(["extra", "ratio", "labels", "x"])] = copy.deepcopy(draw.choice(JUNK))
        else:
            place.append(copy.deepcopy(draw.choice(JUNK)))
        return


def change_weights(weights, draw):
    """Change type, shape, values or name of one weight."""
    if not weights:
        return
    name = draw.choice(sorted(weights))
    value, kind = weights.pop(name), draw.randrange(6)
    if kind == 0:
        weights[name] = value.to(draw.choice(DTYPES))
    elif kind == 1:
        weights[name] = value.reshape(-1)[: draw.randrange(value.numel() + 1)].clone()
    elif kind == 2:
        fill = draw.choice([float("nan"), float("inf"), 1e38, 0.0, -1.0])
        weights[name] = torch.full_like(value, fill if value.is_floating_point() else 7)
    elif kind == 3:
        weights[f"{name}x"] = value
    elif kind == 4:
        weights[name] = value[None].clone()
    # else it is left out


def attempt(base, draw, folder: Path):
    """The outcome of one changed file: "answered", "refused", or the traceback of an unexpected error."""
    content, weights = copy.deepcopy(base[0]), {name: value.clone() for name, value in base[1].items()}
    content.pop("checksum")
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        change_weights(weights, draw) if draw.random() < 0.25 else change_content(content, draw)
    file = folder / "changed.safetensors"
    try:
        content["checksum"] = checkpoint.checksum(content, weights)
        file.write_bytes(pack_tensors(weights, metadata={checkpoint.KEY: json.dumps(content)}))
    except Exception:  # not a file that can exist, such as one with an unpaired surrogate
        return "not a file"
    try:
        for graphs, p in predict_source(checkpoint.load(file), base[2]):
            assert p.shape == (len(graphs), len(content["classes"]))
    except AsapoolError as error:
        return "refused" if "\n" not in str(error).strip() else f"more than one line: {error}"
    except Exception:
        return f"{json.dumps(content)[:2000]}\n{traceback.format_exc()}"
    return "answered"


def fuzz(times: int, seed: int = 0) -> tuple[list[str], Counter[str]]:
    """Try `times` changed files; return the tracebacks, and how many files were answered and refused."""
    draw, failures, outcome = random.Random(seed), [], Counter()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, k = bases(Path(name)), 0
        while sum(outcome.values()) < times:
            result, k = attempt(made[k % len(made)], draw, Path(name)), k + 1
            if result in ("answered", "refused"):
                outcome[result] += 1
            elif result != "not a file":
                outcome["traceback"] += 1
                failures.append(result)
    return failures, outcome


def main() -> None:
    """Try the files, print the first tracebacks and their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("times", type=int, nargs="?", default=1000)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    args = parser.parse_args()
    result, outcome = fuzz(args.times, args.seed)
    for text in result[:20]:
        print(text, end="\n\n")
    if args.write:
        from benchmarks.measuring import machine, write

        write(
            "fuzz_checkpoint",
            {
                "what": "model files with a correct checksum and wrong content",
                "command": f"python -m tests.models.fuzz_checkpoint {args.times} {args.seed}",
                "files": args.times,
                "outcomes": dict(outcome.most_common()),
                "tracebacks": len(result),
                "machine": machine(),
            },
        )
    print(f"{len(result)} tracebacks in {args.times} files: {dict(outcome)}")
    sys.exit(bool(result))


if __name__ == "__main__":
    main()
