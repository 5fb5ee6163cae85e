"""Finished sets (.npz, converted JSON lines, built-in ones) checked against the options of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from asapool.data.classes import check_labels, number_classes
from asapool.data.graphset import GraphSet
from asapool.data.options import ReadOptions
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
        labels = [None if k < 0 else graphs.class_names[k] for k in graphs.y.tolist()]
        y, names = number_classes(labels, graphs.name, options.classes)
        graphs = graphs.with_fields(y=y, class_names=names, recipe=dict(options.recipe) | {"classes": list(names)})
    if options.labels == "ignored":
        return graphs.with_fields(y=np.full(len(graphs), -1, np.int64))
    check_labels(graphs.y, graphs.name, options.labels or "optional")
    return graphs


def _columns(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: recipe[key] for key in MAKES_X if key in recipe}
