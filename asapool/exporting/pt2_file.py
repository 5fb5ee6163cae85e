"""A model as a program of torch.export: packed batches, with the compiled loops of asapool as custom operators."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.fx.experimental import _config as export_settings

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.exporting.comparing import Answer
from asapool.exporting.quiet import quiet
from asapool.models.batches import cut
from asapool.models.checkpoint import LoadedModel
from asapool.models.classifier import GraphModel
from asapool.models.direct import DirectModel

METADATA = "asapool.json"


def check_method(loaded: LoadedModel) -> None:
    """Refuse a model that is no network."""
    if isinstance(loaded.model, DirectModel):
        raise ConfigError(
            f"the method {loaded.config.method!r} is no network of tensors, so torch.export cannot write it"
        )


def make(loaded: LoadedModel, graphs: GraphSet, metadata: str) -> tuple[bytes, dict[str, str], Answer]:
    """The content of the file, its inputs, and a function that runs it on some graphs."""
    order = np.argsort(np.diff(graphs.ptr), kind="stable")
    arguments = packed_inputs(loaded.model, graphs, order[[0, len(order) // 2, -1]])
    free = {0: torch.export.Dim.DYNAMIC}
    names = ("weight", *loaded.model.reads)
    try:
        # sizes of 0 and 1 are not taken for constants: a batch may be one graph, and a graph may have no edge
        with quiet(), export_settings.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
            program = torch.export.export(
                loaded.model.eval().requires_grad_(False),
                arguments[:4],
                dict(zip(names, arguments[4:], strict=True)),
                dynamic_shapes=dict.fromkeys(("x", "ptr", "rowptr", "col", *names), free),
            )
            held = io.BytesIO()
            torch.export.save(program, held, extra_files={METADATA: metadata})
            runs = torch.export.load(io.BytesIO(held.getvalue())).module()
    except Exception as error:  # torch.export fails in many ways, and the first line says what it could not follow
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"a model of the method {loaded.config.method!r} cannot be exported by torch.export ({reason[:200]})"
        ) from error

    def answer(graphs: GraphSet, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        given = packed_inputs(loaded.model, graphs, indices)
        with torch.no_grad():
            logits: npt.NDArray[np.float32] = runs(*given[:4], **dict(zip(names, given[4:], strict=True))).numpy()
        return logits

    described = ("x", "ptr", "rowptr", "col", *names)
    inputs = {
        name: f"{str(value.dtype).removeprefix('torch.')} ({', '.join(['*', *map(str, value.shape[1:])])})"
        for name, value in zip(described, arguments, strict=True)
    }
    return held.getvalue(), inputs, answer


def packed_inputs(model: GraphModel, graphs: GraphSet, indices: npt.NDArray[np.int64]) -> tuple[Tensor, ...]:
    """The inputs of the program for some graphs: x, ptr, rowptr, col, weight, and what else the model reads."""
    batch = cut(model, graphs, indices)
    weight = torch.ones(batch.col.numel()) if batch.weight is None else batch.weight
    more: dict[str, Any] = model.more(batch)
    return (batch.x, batch.ptr, batch.rowptr, batch.col, weight, *(more[name] for name in model.reads))
