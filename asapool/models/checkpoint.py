"""Saves a trained model with everything needed to use it in one file: weights, config, classes, feature recipe.

The file is an ordinary safetensors file, so nothing in it is executable. Its header has one entry, `asapool`: the JSON
of everything that is not a weight, with a checksum over the weights and that JSON, so that damage is noticed. It is a
single entry because safetensors writes several in random order, and the same model must give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asapool.data.targets import Target
from asapool.errors import CheckpointError
from asapool.files import writing
from asapool.models.batches import check_extras
from asapool.models.classifier import GraphModel, build
from asapool.models.config import ModelConfig
from asapool.models.content import check_content, newer
from asapool.models.direct import DirectModel
from asapool.models.ensemble import EnsembleModel
from asapool.models.model_path import FILE as FILE
from asapool.models.model_path import find as find

if TYPE_CHECKING:
    from asapool.data import GraphSet

FORMAT = 2  # for ensembles and targets other than classes; other models are written in format 1, as by 0.1.0
NUMERICS = 1  # raised whenever a code change alters the numbers of a training run; 0.1.0 has 1
KEY = "asapool"
AGAIN = "Train again, or fetch the file again"


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedModel:
    """A model read from its file, in eval mode, with its metadata."""

    model: GraphModel
    classes: tuple[str, ...]  # names of the outputs: of the classes, or of the tasks if there are no classes
    target: Target  # what the outputs mean, with the scale of measured values
    recipe: Mapping[str, Any]  # how the features of a node are made
    summary: Mapping[str, Any]  # the training summary
    fingerprint: str | None  # of the data set it was trained on
    versions: Mapping[str, str]  # of the libraries that wrote it
    extra: Mapping[str, Any]
    path: Path

    @property
    def config(self) -> ModelConfig:
        """The settings of the model."""
        return self.model.config

    @property
    def in_channels(self) -> int:
        """F, the number of features of a node."""
        return self.model.in_channels

    def check(self, graphs: GraphSet, *, labels: bool = False) -> None:
        """Refuse graphs whose features were made differently; with `labels` also those with other classes."""
        where = f"{graphs.name} does not fit the model {self.path}"
        if graphs.num_features != self.in_channels:
            raise CheckpointError(
                f"{where}: its nodes have {graphs.num_features} features, the model was trained on {self.in_channels}. "
                "Load the graphs with the model's recipe"
            )
        check_extras(self.model, graphs)
        recipe, known = _plain(graphs.recipe), dict(self.recipe)
        if recipe and known:  # a set made by hand has no recipe, so only its width can be compared
            for key in sorted((recipe.keys() | known.keys()) - {"classes", "task"}):
                if recipe.get(key) != known.get(key):
                    raise CheckpointError(
                        f"{where}: its features were made with {key} = {_short(recipe.get(key))}, "
                        f"the model's with {_short(known.get(key))}. Load the graphs with the model's recipe"
                    )
        if labels and not graphs.target.matches(self.target):
            given, expected = _short(graphs.target.output_names), _short(self.target.output_names)
            raise CheckpointError(
                f"{where}: its {graphs.target.noun} are {given}, the model's {expected}. "
                "Load the graphs with the model's recipe"
            )


def save(
    path: str | PathLike[str],
    model: GraphModel,
    *,
    recipe: Mapping[str, Any],
    classes: Sequence[str] | None = None,
    target: Target | None = None,
    summary: Mapping[str, Any] | None = None,
    fingerprint: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the model as one file, atomically; the same model and metadata give the same bytes.

    Args:
        path: the file.
        model: the trained model.
        recipe: graphs.recipe of the training graphs.
        classes: the class names, if the model was not trained by asapool.training.fit.
        target: what the outputs mean; by default model.target, or the classes.
        summary: the training summary.
        fingerprint: of the data set it was trained on.
        extra: further plain data.
    """
    data = to_bytes(
        model, recipe=recipe, classes=classes, target=target, summary=summary, fingerprint=fingerprint, extra=extra
    )
    with writing(path, durable=True) as out:
        out.write(data)


def to_bytes(
    model: GraphModel,
    *,
    recipe: Mapping[str, Any],
    classes: Sequence[str] | None = None,
    target: Target | None = None,
    summary: Mapping[str, Any] | None = None,
    fingerprint: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> bytes:
    """The content of the file."""
    from safetensors.torch import save as pack

    import asapool

    target = target or _target_of(model, classes)
    if target.outputs != model.num_classes:
        raise CheckpointError(
            f"a model with {model.num_classes} outputs needs as many names, got {_short(target.output_names)}"
        )
    members = model.models if isinstance(model, EnsembleModel) else []
    plain = target.kind == "classification" and not members  # the format of 0.1.0
    # the arrays of a direct model are not only weights but also labels and thresholds, which must stay exact
    exact = isinstance((members or [model])[0], DirectModel)
    weights = {name: _portable(value, exact) for name, value in sorted(model.state_dict().items())}
    content = _plain(
        {
            "format": 1 if plain else FORMAT,
            "config": model.config.to_dict(),
            "in_channels": model.in_channels,
            "typical_nodes": model.typical_nodes,
            "classes": [str(name) for name in target.output_names],
            "recipe": recipe,
            "summary": summary or {},
            "fingerprint": fingerprint,
            "extra": extra or {},
            "versions": {"asapool": asapool.__version__, "torch": torch.__version__, "numerics": str(NUMERICS)},
        }
        | ({"edge_channels": model.shape.edge_channels} if model.shape.edge_channels else {})
        | ({"graph_channels": model.shape.graph_channels} if model.shape.graph_channels else {})
        | ({} if plain else {"target": target.to_dict()})
        | ({"members": [_member(member) for member in members]} if members else {})
    )
    content["checksum"] = checksum(content, weights)
    data: bytes = pack(weights, metadata={KEY: _text(content)})
    return data


def load(path: str | PathLike[str]) -> LoadedModel:
    """Read a model that `save` wrote.

    Args:
        path: a run folder or a model file.

    Returns:
        The model in evaluation mode, with its metadata. A model of a newer version of asapool is read with a warning;
        anything that is not a model raises a CheckpointError.
    """
    import asapool

    path = find(path)
    content, weights = _read(path)
    where = f"{path}: "
    if content.pop("checksum", None) != checksum(content, weights):
        raise CheckpointError(f"{where}the content does not match its checksum, so the file is damaged. {AGAIN}")
    advice = AGAIN
    try:
        check_content(content)
        writer = content["versions"].get("asapool")
        if newer(writer, asapool.__version__):
            advice = f"It was written by asapool {writer}, and this is {asapool.__version__}: update asapool"
        classes = tuple(content["classes"])
        target = Target.from_dict(content["target"]) if "target" in content else Target(classes=classes)
        if target.output_names != classes:
            raise ValueError(f"the target has the outputs {_short(target.output_names)}, the model {_short(classes)}")
        with torch.device("meta"):  # shapes only: the weights are replaced below
            model = _build_model(content, len(classes))
        if not isinstance(model, DirectModel) and not (isinstance(model, EnsembleModel) and model.direct):
            _check_dtypes(model, weights)
        model.load_state_dict(weights, assign=True)
        model.target = target
        for member, entry in zip(getattr(model, "models", ()), content.get("members", ()), strict=True):
            member.target = Target.from_dict(entry["target"]) if "target" in entry else target
        if advice != AGAIN:
            warnings.warn(f"{path}: {advice[0].lower()}{advice[1:]} if it behaves oddly", stacklevel=2)
        return LoadedModel(
            model=model.eval(),
            classes=classes,
            target=target,
            recipe=content["recipe"],
            summary=content["summary"],
            fingerprint=content["fingerprint"],
            versions=content["versions"],
            extra=content["extra"],
            path=path,
        )
    except Exception as error:  # the checksum is right, so another program wrote an invalid file
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise CheckpointError(f"{where}the model in it cannot be rebuilt ({reason}). {advice}") from error


def _target_of(model: GraphModel, classes: Sequence[str] | None) -> Target:
    """The target of a model, from its training or from the class names."""
    known = model.target
    if known is not None and (classes is None or known.kind != "classification"):
        return known
    if classes is None:
        raise CheckpointError("a model that was not trained has no names for its outputs. Give classes or target")
    names = ("label",) if known is None else known.names
    return Target(names=names, classes=tuple(map(str, classes)))


def _build_model(content: Mapping[str, Any], outputs: int) -> GraphModel:
    """The model that a file describes; an ensemble if it has members."""
    members = content.get("members") or [{"typical_nodes": content["typical_nodes"]}]
    models = [
        build(
            ModelConfig.from_dict(content["config"]), content["in_channels"], outputs,
            typical_nodes=member["typical_nodes"], edge_channels=content.get("edge_channels", 0),
            graph_channels=content.get("graph_channels", 0),
        )
        for member in members
    ]  # fmt: skip
    return EnsembleModel(models) if "members" in content else models[0]


def _member(model: GraphModel) -> dict[str, Any]:
    """The metadata that may differ between the members of an ensemble."""
    target = {} if model.target is None else {"target": model.target.to_dict()}
    return {"typical_nodes": model.typical_nodes, **target}


def _check_dtypes(model: GraphModel, weights: Mapping[str, Tensor]) -> None:
    for name, expected in model.state_dict().items():
        if name in weights and weights[name].dtype != expected.dtype:
            raise ValueError(f"{name} must be {expected.dtype}, got {weights[name].dtype}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata and the weights of a file, which may be invalid in any way."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise CheckpointError(f"{path}: a safetensors file, but not a model of asapool. Give one that is")
            content = json.loads(text)
            version = content["format"]
            if isinstance(version, int) and version > FORMAT:
                raise CheckpointError(
                    f"{path}: has format {version} of a newer asapool, this one reads up to {FORMAT}. Update asapool"
                )
            # copies: a tensor mapped to the file would change or crash with it
            return content, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
    except CheckpointError:
        raise
    except PermissionError:
        raise CheckpointError(f"{path}: may not be read. Ask its owner for permission") from None
    except Exception as error:  # for a damaged file safetensors and json raise many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path}: not a model of asapool, or a damaged one ({reason}). {AGAIN}") from None


def checksum(content: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over the metadata and over name, type, shape and bytes of every weight."""
    digest = hashlib.sha256(_text(content).encode())
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _portable(value: Tensor, exact: bool) -> Tensor:
    """A copy on the CPU, in float32 unless it must be exact; integers keep their type."""
    value = value.detach().cpu()
    return (value.float() if value.is_floating_point() and not exact else value).contiguous().clone()


def _plain(value: Any) -> Any:
    """The value after a JSON round trip: only dicts, lists, text and numbers."""
    try:
        return json.loads(json.dumps(value, default=_to_json))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"a checkpoint can contain only plain data: {error}") from None


def _to_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # numpy's and torch's numbers and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain data")


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _short(value: Any, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
