"""One file that holds a trained classifier and all it takes to use it: weights, config, classes, the features' recipe.

The file is an ordinary safetensors file, so nothing in it can run. Its header has one text, `asapool`, with the JSON of
everything that is not a weight, and with a checksum over the weights and that JSON, so that damage is noticed. It is
one text and not several: safetensors writes several in random order, and the same model must give the same bytes.
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

if TYPE_CHECKING:
    from asapool.data import GraphSet

FORMAT = 2  # of models whose target is not one class; 0.1.0 wrote 1, and so do all models of classes
NUMERICS = 1  # raised whenever a change of the code changes the numbers of a training; 0.1.0 has 1
KEY = "asapool"
FILE = "model.safetensors"  # in a run folder
AGAIN = "Train again, or fetch the file again"


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedModel:
    """A classifier as it came from its file, in eval mode, with what is known about it."""

    model: GraphModel
    classes: tuple[str, ...]  # names of the outputs: of the classes, or of the tasks where there are no classes
    target: Target  # what the outputs mean, with the scale of measured values
    recipe: Mapping[str, Any]  # how the features of a node are made
    summary: Mapping[str, Any]  # what training noted about itself
    fingerprint: str | None  # of the data set it was trained on
    versions: Mapping[str, str]  # of the libraries that wrote it
    extra: Mapping[str, Any]
    path: Path

    @property
    def config(self) -> ModelConfig:
        """What kind of model it is."""
        return self.model.config

    @property
    def in_channels(self) -> int:
        """F, the number of features of a node."""
        return self.model.in_channels

    def check(self, graphs: GraphSet, *, labels: bool = False) -> None:
        """Refuse graphs whose features were made in another way; with `labels` also those with other classes."""
        where = f"{graphs.name} does not fit the model {self.path}"
        if graphs.num_features != self.in_channels:
            raise CheckpointError(
                f"{where}: its nodes have {graphs.num_features} features, the model was trained on {self.in_channels}. "
                "Load the graphs with the model's recipe"
            )
        check_extras(self.model, graphs)
        recipe, known = _plain(graphs.recipe), dict(self.recipe)
        if recipe and known:  # a set made by hand has no recipe: then the width is all there is to compare
            for key in sorted((recipe.keys() | known.keys()) - {"classes", "task"}):
                if recipe.get(key) != known.get(key):
                    raise CheckpointError(
                        f"{where}: its features were made with {key} = {_short(recipe.get(key))}, "
                        f"the model's with {_short(known.get(key))}. Load the graphs with the model's recipe"
                    )
        if labels and not graphs.target.matches(self.target):
            theirs, ours = _short(graphs.target.output_names), _short(self.target.output_names)
            raise CheckpointError(
                f"{where}: its {graphs.target.noun} are {theirs}, the model's {ours}. "
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
    """Write the model as one file, whole or not at all; the same model and words give the same bytes.

    Args:
        path: the file.
        model: with its weights.
        recipe: of the graphs it was trained on, graphs.recipe.
        classes: the names of the classes, where the model was not trained by asapool.training.fit.
        target: what the outputs mean; by default what training noted in the model, or the classes.
        summary: what training noted about itself.
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
            f"a model of {model.num_classes} outputs needs as many names, got {_short(target.output_names)}"
        )
    members = model.models if isinstance(model, EnsembleModel) else []
    plain = target.kind == "classification" and not members  # as 0.1.0 wrote it
    exact = isinstance(
        (members or [model])[0], DirectModel
    )  # its arrays are not only weights: counts, thresholds, names as numbers
    weights = {name: _portable(value, exact) for name, value in sorted(model.state_dict().items())}
    words = _plain(
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
        | ({"members": [_member(one) for one in members]} if members else {})
    )
    words["checksum"] = checksum(words, weights)
    data: bytes = pack(weights, metadata={KEY: _text(words)})
    return data


def find(path: str | PathLike[str]) -> Path:
    """The model file that a path means: the file itself, or the model.safetensors of a run folder.

    Args:
        path: a model file, or a folder that `asapool train` has finished.

    Returns:
        The path of an existing file; anything else is a CheckpointError.
    """
    place = Path(path)
    try:
        if place.is_dir():
            if not (place / FILE).is_file():
                begun = (place / "config.toml").exists()
                step = f"Finish its training with: asapool train --resume {place}" if begun else "Name a run folder"
                raise CheckpointError(f"{place}: the folder holds no {FILE}. {step}")
            return place / FILE
        if not place.is_file():
            raise CheckpointError(f"{place}: there is no such file. Give the path of a run folder or a {FILE}")
    except CheckpointError:
        raise
    except (OSError, ValueError) as error:  # a name that is too long, or has a NUL
        raise CheckpointError(f"{str(place)[:60]!r}: cannot be looked for ({error})") from None
    return place


def load(path: str | PathLike[str]) -> LoadedModel:
    """Read a model that `save` wrote.

    Args:
        path: a run folder or a model file.

    Returns:
        The model in evaluation mode, with what is known about it. A model of a newer version of asapool is read with a
        warning; anything that is no model is a CheckpointError that says why.
    """
    import asapool

    path = find(path)
    words, weights = _read(path)
    where = f"{path}: "
    if words.pop("checksum", None) != checksum(words, weights):
        raise CheckpointError(f"{where}the content does not match its checksum, so the file is damaged. {AGAIN}")
    again = AGAIN
    try:
        check_content(words)
        writer = words["versions"].get("asapool")
        if newer(writer, asapool.__version__):
            again = f"It was written by asapool {writer}, and this is {asapool.__version__}: update asapool"
        classes = tuple(words["classes"])
        target = Target.from_dict(words["target"]) if "target" in words else Target(classes=classes)
        if target.output_names != classes:
            raise ValueError(f"the target has the outputs {_short(target.output_names)}, the model {_short(classes)}")
        with torch.device("meta"):  # shapes only: the weights are replaced at once
            model = _built(words, len(classes))
        if not isinstance(model, DirectModel) and not (isinstance(model, EnsembleModel) and model.direct):
            _check_dtypes(model, weights)
        model.load_state_dict(weights, assign=True)
        model.target = target
        for one, member in zip(getattr(model, "models", ()), words.get("members", ()), strict=True):
            one.target = Target.from_dict(member["target"]) if "target" in member else target
        if again != AGAIN:
            warnings.warn(f"{path}: {again[0].lower()}{again[1:]} if it behaves oddly", stacklevel=2)
        return LoadedModel(
            model=model.eval(),
            classes=classes,
            target=target,
            recipe=words["recipe"],
            summary=words["summary"],
            fingerprint=words["fingerprint"],
            versions=words["versions"],
            extra=words["extra"],
            path=path,
        )
    except Exception as error:  # the checksum is right, so some other program wrote it, and wrongly
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise CheckpointError(f"{where}the model in it cannot be rebuilt ({reason}). {again}") from error


def _target_of(model: GraphModel, classes: Sequence[str] | None) -> Target:
    """What the outputs of a model mean, from its training or from the names of the classes."""
    known = model.target
    if known is not None and (classes is None or known.kind != "classification"):
        return known
    if classes is None:
        raise CheckpointError("a model that was not trained has no names of its outputs. Give classes or target")
    names = ("label",) if known is None else known.names
    return Target(names=names, classes=tuple(map(str, classes)))


def _built(words: Mapping[str, Any], outputs: int) -> GraphModel:
    """The model that a file describes, an ensemble where it has members."""
    members = words.get("members") or [{"typical_nodes": words["typical_nodes"]}]
    models = [
        build(
            ModelConfig.from_dict(words["config"]), words["in_channels"], outputs,
            typical_nodes=member["typical_nodes"], edge_channels=words.get("edge_channels", 0),
            graph_channels=words.get("graph_channels", 0),
        )
        for member in members
    ]  # fmt: skip
    return EnsembleModel(models) if "members" in words else models[0]


def _member(model: GraphModel) -> dict[str, Any]:
    """What may differ between the members of an ensemble, weights aside."""
    target = {} if model.target is None else {"target": model.target.to_dict()}
    return {"typical_nodes": model.typical_nodes, **target}


def _check_dtypes(model: GraphModel, weights: Mapping[str, Tensor]) -> None:
    for name, expected in model.state_dict().items():
        if name in weights and weights[name].dtype != expected.dtype:
            raise ValueError(f"{name} must be {expected.dtype}, got {weights[name].dtype}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The words and the weights of a file, which may be anything."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise CheckpointError(f"{path}: a safetensors file, but not a model of asapool. Give one that it wrote")
            words = json.loads(text)
            version = words["format"]
            if isinstance(version, int) and version > FORMAT:
                raise CheckpointError(
                    f"{path}: in format {version} of a newer asapool, this one reads up to {FORMAT}. Update asapool"
                )
            # copies: a tensor that still lies in the file would change or crash with it
            return words, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (not a dict)
    except CheckpointError:
        raise
    except PermissionError:
        raise CheckpointError(f"{path}: may not be read. Ask its owner for permission") from None
    except Exception as error:  # a damaged file can make its readers stumble in any way
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path}: not a model of asapool, or a damaged one ({reason}). {AGAIN}") from None


def checksum(words: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over the words and over name, type, shape and bytes of every weight."""
    digest = hashlib.sha256(_text(words).encode())
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _portable(value: Tensor, exact: bool) -> Tensor:
    """A copy on the CPU, in float32 unless it must be exact; whole numbers stay whole."""
    value = value.detach().cpu()
    return (value.float() if value.is_floating_point() and not exact else value).contiguous().clone()


def _plain(value: Any) -> Any:
    """The value after a journey through JSON: dicts, lists, text and numbers only."""
    try:
        return json.loads(json.dumps(value, default=_simpler))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"a checkpoint holds plain data only: {error}") from None


def _simpler(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # numpy's and torch's numbers and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not plain data")


def _text(words: Mapping[str, Any]) -> str:
    return json.dumps(words, sort_keys=True, separators=(",", ":"))


def _short(value: Any, most: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
