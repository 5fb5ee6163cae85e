"""What a model file says about itself, as plain data: its method, its inputs, its target, its training, its scores."""

from __future__ import annotations

from typing import Any

from asapool.data.descriptors import descriptor_columns, rdkit_names
from asapool.data.reading import ReadOptions
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel
from asapool.training.trust import KEY, Trust


def model_card(trained: LoadedModel) -> dict[str, Any]:
    """The card of a model.

    Args:
        trained: the model.

    Returns:
        method, members (of an ensemble, else 1), parameters, target (its kind), classes (or tasks), units, inputs,
        recipe, trained_on, source, fingerprint, epochs, best_epoch, scores of the validation and test parts,
        validation_graphs (on which uncertainty is calibrated, None if the file has no such data) and versions.
    """
    model, summary = trained.model, trained.summary
    trust = Trust.from_dict(trained.extra[KEY]) if KEY in trained.extra else None
    return {
        "method": trained.config.method,
        "members": len(model.members) if isinstance(model, EnsembleModel) else 1,
        "parameters": sum(p.numel() for p in model.parameters()),
        "target": trained.target.kind,
        "classes": list(trained.classes),
        "units": list(trained.target.units),
        "inputs": _inputs(trained),
        "recipe": dict(trained.recipe),
        "trained_on": summary.get("name"),
        "source": summary.get("source"),
        "fingerprint": trained.fingerprint,
        "epochs": summary.get("epochs"),
        "best_epoch": summary.get("best_epoch"),
        "scores": {part: summary.get(part) for part in ("validation", "test")},
        "validation_graphs": None if trust is None else min((len(task.scores) for task in trust.tasks), default=0),
        "versions": dict(trained.versions),
    }


def _inputs(trained: LoadedModel) -> dict[str, Any]:
    """What new graphs need: SMILES or graphs, columns of descriptors, numbers of features."""
    model, options = trained.model, ReadOptions(recipe=trained.recipe or None)
    return {
        "kind": "SMILES" if trained.recipe.get("kind") == "smiles" else "graphs",
        "descriptors": descriptor_columns(options),
        "rdkit_descriptors": rdkit_names(options),
        "node_features": trained.in_channels,
        "edge_features": model.shape.edge_channels if "edge_attr" in model.reads else 0,
    }
