"""Finished sets (.npz, converted JSON lines, built-in ones) checked against the options of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asapool.data.classes import check_labels, number_classes
from asapool.data.graphset import GraphSet
from asapool.data.options import ReadOptions
from asapool.data.targets import Target, empty_values
from asapool.errors import DataError

MAKES_X = ("version", "kind", "features", "labels", "attributes", "max_degree")  # what of a recipe decides the columns


def apply_recipe(graphs: GraphSet, options: ReadOptions) -> GraphSet:
    """Give a finished set the classes of the recipe, or refuse when its columns are not those asked for."""
    made = graphs.recipe.get("features", "auto")
    if options.features not in (None, "auto", made):
        raise DataError(
            f"{graphs.name}: the features are finished ({made}), so features={options.features!r} cannot be made. "
            "Read the original source instead"
        )
    if options.recipe is not None:
        if _columns(options.recipe) != _columns(graphs.recipe):
            raise DataError(
                f"{graphs.name}: the features were made by another recipe than the one asked for. "
                "Read the original source with that recipe instead"
            )
        graphs = _with_target_of(graphs, options)
    elif options.task not in (None, graphs.target.kind):
        raise DataError(
            f"{graphs.name}: the target is finished ({graphs.target.kind}), so task={options.task!r} cannot be made. "
            "Read the original source instead"
        )
    if options.labels == "ignored":
        return graphs.with_fields(y=empty_values(graphs.target, len(graphs)))
    if graphs.target.kind == "classification":
        check_labels(graphs.y, graphs.name, options.labels or "optional")
    return graphs


def _with_target_of(graphs: GraphSet, options: ReadOptions) -> GraphSet:
    """Number the classes as the recipe does, or check that the targets are those of the recipe."""
    assert options.recipe is not None
    known = options.known_target
    if known is not None:
        if graphs.target.kind == known.kind and graphs.target.names == known.names:
            return graphs.with_fields(recipe=dict(options.recipe), target=known)
        return graphs.with_fields(
            recipe=dict(options.recipe), target=known, class_names=(), y=empty_values(known, len(graphs))
        )
    measured = graphs.target.kind != "classification"
    labels = [
        None if measured or k < 0 else graphs.class_names[k] for k in ([0] * len(graphs) if measured else graphs.y)
    ]
    y, names = number_classes(labels, graphs.name, options.classes)
    return graphs.with_fields(
        y=y, class_names=names, target=Target(classes=names), recipe=dict(options.recipe) | {"classes": list(names)}
    )


def _columns(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: recipe[key] for key in MAKES_X if key in recipe}
