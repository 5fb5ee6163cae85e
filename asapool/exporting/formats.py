"""The export formats: ONNX for padded batches, and torch.export programs for packed ones."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.fx.experimental import _config as export_settings

from asapool.data import GraphSet
from asapool.errors import ConfigError, MissingExtraError
from asapool.exporting.comparing import Answer
from asapool.kernels.dense import pad
from asapool.models.batches import cut
from asapool.models.checkpoint import LoadedModel
from asapool.models.classifier import GraphModel
from asapool.models.direct import DirectModel
from asapool.models.padded import PaddedModel


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress log records and warnings; tracing is also several times faster without debug records."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


OPSET = 20  # of ONNX
METADATA = "asapool.json"  # the file inside a .pt2 that describes it


def check_onnx(loaded: LoadedModel) -> None:
    """Refuse a model whose method has no padded form."""
    reason = loaded.model.why_not_padded()
    if reason is not None:
        raise ConfigError(f"{reason}, so a model of the method {loaded.config.method!r} cannot be exported to ONNX")


def make_onnx(loaded: LoadedModel, graphs: GraphSet, metadata: str) -> tuple[bytes, dict[str, str], Answer]:
    """The content of the file, its inputs, and a function that runs it on some graphs."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise MissingExtraError(str(error.name), "export") from None
    ops = onnxscript.values.Opset("", OPSET)

    def sort_stable(x: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
        # ONNX's TopK breaks ties in favour of the lower index, like a stable sort
        size = ops.Gather(ops.Shape(x), ops.Constant(value_ints=[dim]))
        return ops.TopK(x, size, axis=dim, largest=int(descending), sorted=1)

    def sigmoid(x: Any) -> Any:
        # onnxruntime's own sigmoid is constant for x below -18, but clusters are ranked by it
        return ops.Reciprocal(ops.Add(ops.Exp(ops.Neg(x)), ops.CastLike(ops.Constant(value_float=1.0), x)))

    model = PaddedModel(loaded.model).eval()
    arguments = padded_inputs(loaded.model, *example(loaded.model, graphs))
    batch, nodes = torch.export.Dim("batch"), torch.export.Dim("nodes")
    free = {"x": {0: batch, 1: nodes}, "adjacency": {0: batch, 1: nodes, 2: nodes}, "sizes": {0: batch}}
    free |= {"edge_attr": {0: batch, 1: nodes, 2: nodes}, "graph_attr": {0: batch}}
    with quiet():
        program = torch.onnx.export(
            model,
            kwargs={name: torch.from_numpy(value) for name, value in arguments.items()},
            dynamo=True,
            dynamic_shapes={name: free[name] for name in arguments},
            input_names=list(arguments),
            output_names=["logits"],
            opset_version=OPSET,
            verbose=False,
            custom_translation_table={torch.ops.aten.sort.stable: sort_stable, torch.ops.aten.sigmoid.default: sigmoid},
        )
    assert program is not None  # for the type checker: dynamo=True returns a program
    program.model.metadata_props["asapool"] = metadata
    content: bytes = program.model_proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def answer(graphs: GraphSet, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        logits: npt.NDArray[np.float32] = session.run(["logits"], padded_inputs(loaded.model, graphs, indices))[0]
        return logits

    shapes = {"x": "batch, nodes, ", "adjacency": "batch, nodes, nodes", "sizes": "batch"}
    shapes |= {"edge_attr": "batch, nodes, nodes, ", "graph_attr": "batch, "}
    wide = ("x", "edge_attr", "graph_attr")
    inputs = {
        name: f"{value.dtype} ({shapes[name]}{value.shape[-1] if name in wide else ''})"
        for name, value in arguments.items()
    }
    return content, inputs, answer


def padded_inputs(model: GraphModel, graphs: GraphSet, indices: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """The inputs of the ONNX file for some graphs: x, adjacency, sizes, and the other inputs of the model."""
    batch = cut(model, graphs, indices)
    x, graph = pad(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight, batch.edge_attr)
    arguments = {"x": x.float(), "adjacency": graph.weight.float(), "sizes": batch.ptr.diff()}
    if "edge_attr" in model.reads:
        assert graph.edge_attr is not None
        arguments["edge_attr"] = graph.edge_attr.float()
    if "graph_attr" in model.reads:
        assert batch.graph_attr is not None
        arguments["graph_attr"] = batch.graph_attr.float()
    return {name: value.numpy() for name, value in arguments.items()}


def example(model: GraphModel, graphs: GraphSet) -> tuple[GraphSet, npt.NDArray[np.int64]]:
    """Three graphs of different sizes to trace the model on, so that no size is treated as a constant."""
    sizes = np.diff(graphs.ptr)
    order = np.argsort(sizes, kind="stable")
    chosen = order[[0, len(order) // 2, -1]]
    # a padded size of at least 5: smaller ones could coincide with other sizes, such as the number of graphs
    return graphs, chosen if sizes[chosen].max() >= 5 else np.repeat(order[-1:], 3)


def check_pt2(loaded: LoadedModel) -> None:
    """Refuse a model that is not a neural network."""
    if isinstance(loaded.model, DirectModel):
        raise ConfigError(
            f"the method {loaded.config.method!r} is not a neural network, so torch.export cannot write it"
        )


def with_fused(model: GraphModel) -> GraphModel:
    """A copy with the fused backend, because the reference backend, used by small training runs, cannot be exported."""
    fused = copy.deepcopy(model)
    for part in fused.modules():
        if getattr(part, "backend", None) == "reference":
            part.backend = "fused"  # type: ignore[assignment]
    return fused


def make_pt2(loaded: LoadedModel, graphs: GraphSet, metadata: str) -> tuple[bytes, dict[str, str], Answer]:
    """The content of the file, its inputs, and a function that runs it on some graphs."""
    order = np.argsort(np.diff(graphs.ptr), kind="stable")
    arguments = packed_inputs(loaded.model, graphs, order[[0, len(order) // 2, -1]])
    free = {0: torch.export.Dim.DYNAMIC}
    names = ("weight", *loaded.model.reads)
    try:
        # do not treat sizes of 0 and 1 as constants: a batch may be one graph, and a graph may have no edges
        with quiet(), export_settings.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
            program = torch.export.export(
                with_fused(loaded.model).eval().requires_grad_(False),
                arguments[:4],
                dict(zip(names, arguments[4:], strict=True)),
                dynamic_shapes=dict.fromkeys(("x", "ptr", "rowptr", "col", *names), free),
            )
            buffer = io.BytesIO()
            torch.export.save(program, buffer, extra_files={METADATA: metadata})
            runs = torch.export.load(io.BytesIO(buffer.getvalue())).module()
    except Exception as error:  # torch.export fails in many ways; the first line says what it could not trace
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
    return buffer.getvalue(), inputs, answer


def packed_inputs(model: GraphModel, graphs: GraphSet, indices: npt.NDArray[np.int64]) -> tuple[Tensor, ...]:
    """The inputs of the program for some graphs: x, ptr, rowptr, col, weight, and the other inputs of the model."""
    batch = cut(model, graphs, indices)
    weight = torch.ones(batch.col.numel()) if batch.weight is None else batch.weight
    more: dict[str, Any] = model.more(batch)
    return (batch.x, batch.ptr, batch.rowptr, batch.col, weight, *(more[name] for name in model.reads))


@dataclass(frozen=True)
class Format:
    """A file format: `check` refuses a model that it does not support, `make` returns the content of the file."""

    check: Callable[[LoadedModel], None]
    make: Callable[[LoadedModel, GraphSet, str], tuple[bytes, dict[str, str], Answer]]


FORMATS = {".onnx": Format(check_onnx, make_onnx), ".pt2": Format(check_pt2, make_pt2)}
