"""Every exportable method in ONNX and .pt2: checked, and the latency of one molecule beside eager PyTorch.

    python -m benchmarks.export_latency [--hidden 64] [--graphs 200]

Models with random weights on the NCI molecules that come with rdkit. One thread each.
Writes benchmarks/results/export_latency.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import asapool
from asapool.exporting import export
from asapool.exporting.formats import packed_inputs, padded_inputs
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import cut, edge_channels
from asapool.training.predictions import logits_of
from benchmarks.measuring import machine, write


def median_ms(run: Callable[[], Any], count: int = 200) -> float:
    """Median time of a call."""
    times = []
    for _ in range(count + 20):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return round(float(np.median(times[20:])) * 1000, 3)


def main() -> None:
    """All methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--methods", default="asap,asap+,none+,topk,sagpool,mlp")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = asapool.load("nci-alerts")
    one = np.array([int(np.argsort(np.diff(data.ptr))[len(data) // 2])])  # a molecule of the median size
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    rows = []
    for name in options.methods.split(","):
        config = ModelConfig(method=name, hidden=options.hidden)
        model = build(config, data.num_features, 2, seed=0, edge_channels=edge_channels(data)).eval()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            checkpoint.save(path, model, classes=data.class_names, recipe=data.recipe)
            row: dict[str, Any] = {"method": name, "atoms": int(np.diff(data.ptr)[one[0]])}
            for ending in ("onnx", "pt2"):
                done = export(path, Path(folder) / f"m.{ending}", graphs=options.graphs)
                row |= {f"{ending}_difference": float(f"{done.difference:.1e}"), f"{ending}_ties": done.ties}
            session = onnxruntime.InferenceSession(f"{folder}/m.onnx", settings, providers=["CPUExecutionProvider"])
            padded, batch = padded_inputs(model, data, one), cut(model, data, one)
            program, given = torch.export.load(f"{folder}/m.pt2").module(), packed_inputs(model, data, one)
            more = dict(zip(("weight", *model.reads), given[4:], strict=True))
            row["eager_ms"] = median_ms(lambda model=model, batch=batch: logits_of(model, batch))
            row["onnx_ms"] = median_ms(lambda session=session, padded=padded: session.run(["logits"], padded))
            with torch.no_grad():
                row["pt2_ms"] = median_ms(lambda program=program, given=given, more=more: program(*given[:4], **more))
            rows.append(row)
            print(row, flush=True)
    write("export_latency", {"what": "one molecule", "hidden": options.hidden, "runs": rows, "machine": machine()})


if __name__ == "__main__":
    main()
