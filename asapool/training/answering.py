"""Answers to a source with all that goes into their file: what was read, the answers, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from asapool.data import GraphSet, Reading
from asapool.errors import DataError
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel
from asapool.training.prediction_files import Further
from asapool.training.predictions import Pair, predict, predict_members, read_source
from asapool.training.trust import Uncertainty, answers_of_tasks


class Wanted(NamedTuple):
    """What a file of predictions shall hold besides the answers.

    Args:
        uncertainty: calibrated probabilities and the distance from the training graphs; the spread of an ensemble is
            always there.
        coverage: of conformal answers; None = without them.
        calibration: "temperature" or "isotonic".
        keep_columns: all columns of a table.
    """

    uncertainty: bool = False
    coverage: float | None = None
    calibration: str = "temperature"
    keep_columns: bool = False


class Answering:
    """Answers to sources, and the columns that belong to them.

    Use: `pairs = answering.pairs(source)`, then `save_predictions(path, pairs, target, answering.further)`.

    Args:
        trained: the model.
        wanted: which columns.
    """

    def __init__(self, trained: LoadedModel, wanted: Wanted | None = None) -> None:
        self.trained, self.wanted = trained, wanted or Wanted()
        asked = self.wanted.uncertainty or self.wanted.coverage is not None
        self.sure = Uncertainty(trained, self.wanted.coverage, self.wanted.calibration) if asked else None
        self._columns: WeakKeyDictionary[GraphSet, Mapping[str, Any]] = WeakKeyDictionary()
        self._further: WeakKeyDictionary[GraphSet, Further] = WeakKeyDictionary()

    @property
    def options(self) -> dict[str, Any]:
        """The options of asapool.load that the columns need."""
        return {"keep_columns": True} if self.wanted.keep_columns else {}

    def notes(self) -> list[str]:
        """What a user should know about the columns."""
        return [] if self.sure is None else self.sure.notes()

    def pairs(
        self, source: str | PathLike[str], on_reading: Callable[[Reading], None] | None = None, **options: Any
    ) -> Iterator[Pair]:
        """Sets of graphs with the answers to them, in the order of the source; arguments as of predict_source."""

        def read(reading: Reading) -> None:
            if on_reading is not None:
                on_reading(reading)
            self._columns[reading.graphs] = self.columns_of(reading, source)

        for graphs in read_source(self.trained, source, on_reading=read, **options, **self.options):
            p, further = self.answer(graphs, self._columns.get(graphs, {}))
            self.hold(graphs, further)
            yield graphs, p

    def columns_of(self, reading: Reading, source: str | PathLike[str]) -> Mapping[str, Any]:
        """The columns of the table that are kept; a source that is no table is refused where some are wanted."""
        if self.wanted.keep_columns and reading.columns is None and len(reading.graphs):
            raise DataError(f"{source}: has no columns to keep, because it is not a table. Leave --keep-columns out")
        return reading.columns or {}

    def answer(self, graphs: GraphSet, columns: Mapping[str, Any]) -> tuple[Any, Further]:
        """The answers to a set, (G, K), and the columns besides."""
        before = {name: cells for name, cells in columns.items() if name != "id"}  # its own column has it
        if not before and graphs.source_text is not None and graphs.recipe.get("kind") == "smiles":
            before = {"smiles": list(graphs.source_text)}
        model, after = self.trained.model, dict[str, Any]()
        if isinstance(model, EnsembleModel):
            members = predict_members(model, graphs)
            p, after = members.mean(axis=0), spread_columns(members, self.trained)
        else:
            p = predict(model, graphs)
        if self.sure is not None:
            after |= self.sure.columns(graphs, p)
        return p, Further(before, after)

    def hold(self, graphs: GraphSet, further: Further) -> None:
        """Keep the columns of a set as long as the set is in use."""
        self._further[graphs] = further

    def further(self, graphs: GraphSet, p: Any) -> Further:
        """The columns besides place, id and answers, for a set that `pairs` gave."""
        return self._further[graphs]


def spread_columns(members: Any, trained: LoadedModel) -> dict[str, Any]:
    """The standard deviation over the members of an ensemble: of the predicted class, of yes, or of the value.

    Args:
        members: their answers, (N, G, K).
        trained: the ensemble.
    """
    target, deviation, mean = trained.target, members.std(axis=0), members.mean(axis=0)
    if target.outputs == target.tasks:
        return {f"spread({name})": column for name, column in zip(target.names, deviation.T, strict=True)}
    [p] = answers_of_tasks(mean, target)
    return {"spread": deviation[np.arange(len(mean)), p.argmax(axis=1)]}
