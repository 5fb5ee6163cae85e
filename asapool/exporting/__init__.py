"""export: write a trained model for other runtimes, as ONNX or as .pt2 for torch.

Nothing is written unless the file gives the same numbers as the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from asapool import __version__
from asapool.errors import ConfigError
from asapool.exporting.comparing import compare, sample_graphs
from asapool.exporting.formats import FORMATS
from asapool.files import writing
from asapool.models import checkpoint
from asapool.models.checkpoint import LoadedModel

__all__ = ["Exported", "export"]

GRAPHS = 200  # for the comparison of file and model


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written, and how it was checked.

    Args:
        path: the file.
        format: "onnx" or "pt2".
        size: bytes.
        inputs: names and shapes of the inputs, in order.
        graphs: number of graphs on which model and file were compared.
        source: where these graphs come from.
        difference: largest difference between logits.
        ties: graphs left out of the comparison, because rounding decides which of several equally fit clusters is kept.
    """

    path: Path
    format: str
    size: int
    inputs: Mapping[str, str]
    graphs: int
    source: str
    difference: float
    ties: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"path": str(self.path)}


def export(model: str | PathLike[str] | LoadedModel, out: str | PathLike[str], *, graphs: int = GRAPHS) -> Exported:
    """Write a trained model as ONNX (out.onnx) or as a program of torch.export (out.pt2).

    The logits of the file are compared with those of the model, to 1e-5, on graphs of the training data if they can
    be read, and on generated ones otherwise. The file is written only if they agree.

    Args:
        model: a run folder, a model file, or a loaded model.
        out: the file to write; its suffix decides the format.
        graphs: number of graphs to compare on.

    Returns:
        What was written, and how it was checked.

    >>> import tempfile
    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> data = load("synthetic:cycles?graphs=6")
    >>> network = build(ModelConfig(hidden=8, levels=1), data.num_features, 2, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(f"{folder}/model.safetensors", network, classes=data.class_names, recipe=data.recipe)
    ...     export(folder, f"{folder}/model.onix")
    Traceback (most recent call last):
    asapool.errors.ConfigError: ...model.onix: the file to write must end in .onnx or .pt2
    """
    path = Path(out)
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: the file to write must end in {' or '.join(FORMATS)}")
    if path.is_dir() or not path.parent.is_dir():
        reason = "it is a folder" if path.is_dir() else "its folder does not exist"
        raise ConfigError(f"{path}: cannot be written, {reason}. Name a file in a folder that exists")
    if graphs < 1:
        raise ConfigError(f"the number of graphs to compare on must be at least 1, got {graphs}")
    loaded = model if isinstance(model, LoadedModel) else checkpoint.load(model)
    format = FORMATS[path.suffix]
    format.check(loaded)
    sample = sample_graphs(loaded, graphs)
    content, inputs, answer = format.make(loaded, sample.graphs, json.dumps(metadata(loaded), ensure_ascii=False))
    compared = compare(loaded.model, sample.graphs, answer, sample.source)
    with writing(path, durable=True) as file:
        file.write(content)
    return Exported(
        path=path, format=path.suffix[1:], size=len(content), inputs=inputs, graphs=len(sample.graphs),
        source=sample.source, difference=compared.difference, ties=compared.ties,
    )  # fmt: skip


def metadata(loaded: LoadedModel) -> dict[str, Any]:
    """The metadata of the file: what is needed to make its inputs and to interpret its outputs."""
    model = loaded.model
    counts = {"ecfp": {"radius": model.config.count_depth, "buckets": model.config.count_buckets}}
    return {
        "asapool": __version__,
        "method": loaded.config.method,
        "classes": list(loaded.classes),
        "target": loaded.target.to_dict(),
        "recipe": dict(loaded.recipe),
        "reads": list(model.reads),
        "counts": counts if "graph_attr" in model.reads and model.config.counts == "ecfp" else {},
        "fingerprint": loaded.fingerprint,
    }
