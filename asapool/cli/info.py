"""`asapool info`: what a model file contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asapool.cli import _options as o
from asapool.cli._output import show
from asapool.cli._values import model_file
from asapool.errors import plural

if TYPE_CHECKING:
    from asapool.models.checkpoint import LoadedModel

NAMED = 8  # classes, tasks or descriptors that are listed


def info(model: o.Model, json: o.Json = False) -> None:
    """Show what a model was trained on, what it needs and predicts, and its scores.

    Reading the file runs no code from it, and its checksum is verified.
    """
    from asapool.models import checkpoint
    from asapool.training.model_card import model_card

    trained = checkpoint.load(model_file(model))
    card = model_card(trained)
    show({"file": str(trained.path), **card}, _rows(trained, card), json)


def _rows(trained: LoadedModel, card: dict[str, Any]) -> dict[str, str]:
    """The card as rows of text."""
    members = f"ensemble of {card['members']} × " if card["members"] > 1 else ""
    rows = {
        "file": f"{trained.path} ({trained.path.stat().st_size / 1e6:.2f} MB)",
        "method": f"{members}{card['method']} ({plural(card['parameters'], 'parameter')})",
        "predicts": _predicts(trained),
        "reads": _reads(card["inputs"]),
        "trained on": _trained_on(card),
    }
    versions = [f"{name} {version}" for name, version in card["versions"].items() if name != "numerics"]
    if card["best_epoch"] is not None and card["epochs"]:
        rows["epoch"] = f"{card['best_epoch']} of {card['epochs']}"
    return {
        **rows,
        **_scores(trained, card),
        "uncertainty": _uncertainty(card["validation_graphs"]),
        "written by": ", ".join(versions),
    }


def _predicts(trained: LoadedModel) -> str:
    target = trained.target
    if target.kind == "classification":
        return f"one of {len(trained.classes)} classes: {_listed(trained.classes)}"
    units = dict(zip(target.names, target.units, strict=False))
    named = [f"{name} [{units[name]}]" if units.get(name) else name for name in target.names]
    what = "measured value" if target.kind == "regression" else "yes/no task"
    return f"{plural(len(named), what)}: {_listed(named)}"


def _reads(inputs: dict[str, Any]) -> str:
    parts = [f"{inputs['kind']} ({plural(inputs['node_features'], 'node feature')}"]
    parts[0] += f", {plural(inputs['edge_features'], 'edge feature')})" if inputs["edge_features"] else ")"
    if inputs["descriptors"]:
        several = "s" * (len(inputs["descriptors"]) > 1)
        parts.append(f"the column{several} {_listed(inputs['descriptors'])}")
    if inputs["rdkit_descriptors"]:
        parts.append(f"{plural(len(inputs['rdkit_descriptors']), 'descriptor')} that RDKit computes")
    return ", ".join(parts)


def _trained_on(card: dict[str, Any]) -> str:
    name, source = card["trained_on"], card["source"]
    text = "unknown data" if name is None else str(name)
    text += f" ({source})" if source not in (None, name) else ""
    return text if card["fingerprint"] is None else f"{text}, fingerprint {card['fingerprint']}"


def _scores(trained: LoadedModel, card: dict[str, Any]) -> dict[str, str]:
    from asapool.training.selection import ALL_METRICS
    from asapool.training.tasks import task_of

    metric = ALL_METRICS[task_of(trained.target).headline]
    return {
        f"{part} {metric.label}": f"{metric.text(scores.get(metric.name))} ({plural(scores['graphs'], 'graph')})"
        for part, scores in card["scores"].items()
        if scores is not None
    }


def _uncertainty(graphs: int | None) -> str:
    if graphs is None:
        return "none: the file has no calibration data"
    if not graphs:
        return "distance from the training graphs; no calibration, because there were no validation graphs"
    return f"calibrated on {plural(graphs, 'validation graph')}"


def _listed(names: Any) -> str:
    shown = ", ".join(map(str, names[:NAMED]))
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
