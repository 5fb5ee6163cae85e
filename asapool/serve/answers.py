"""The model behind the service: graphs in, rows of plain data out. It runs in a single thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from asapool import __version__
from asapool.data import GraphSet
from asapool.data.descriptors import descriptor_columns
from asapool.data.reading import ReadOptions
from asapool.errors import AsapoolError
from asapool.models import checkpoint
from asapool.models.checkpoint import LoadedModel
from asapool.serve.neighbours import Neighbours
from asapool.serve.requests import LONGEST, MoleculeRequest, Refusal, joined
from asapool.serve.settings import ServeSettings
from asapool.training.answering import Answering, Wanted
from asapool.training.model_card import model_card
from asapool.training.prediction_files import columns_of, json_rows
from asapool.training.trust import KEY

Row = dict[str, Any]
USUAL_COVERAGE = 0.9


class Answers:
    """Predictions, embeddings and explanations of one model.

    Args:
        settings: the model file and the limits.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.model: LoadedModel = checkpoint.load(settings.model)
        self.answering = Answering(self.model, wanted_of(self.model, settings.coverage))
        self.neighbours = None if settings.neighbours is None else Neighbours(self.model, settings.neighbours)

    def warm_up(self) -> None:
        """Load and compile in advance what the first request would have to wait for."""
        from asapool.exporting.comparing import generated

        job: MoleculeRequest | GraphSet = generated(self.model, 3)
        if self.model.recipe.get("kind") == "smiles":
            values = (math.nan,) * len(descriptor_columns(ReadOptions(recipe=self.model.recipe)))
            job = MoleculeRequest(["CC(=O)Oc1ccccc1C(=O)O", "CCO"], ["0", "1"], [values] * 2)
        self.predict([job])
        with suppress(AsapoolError, Refusal):
            self.explain(job, None, False)

    def predict(self, jobs: Sequence[MoleculeRequest | GraphSet]) -> list[list[Row] | Exception]:
        """The rows of several requests; all molecules go through the model together."""
        done: list[list[Row] | Exception] = [[] for _ in jobs]
        molecule_jobs = {k: job for k, job in enumerate(jobs) if isinstance(job, MoleculeRequest)}
        try:
            rows = iter(self._rows_of_molecules(joined(list(molecule_jobs.values()))))
            for k, molecules in molecule_jobs.items():
                done[k] = [next(rows) for _ in molecules.smiles]
        except Exception as error:
            for k in molecule_jobs:
                done[k] = error
        for k, job in enumerate(jobs):
            if isinstance(job, GraphSet):
                try:
                    done[k] = self._rows(job)
                except Exception as error:
                    done[k] = error
        return done

    def _rows_of_molecules(self, job: MoleculeRequest) -> list[Row]:
        """One row per molecule, in order; with `error` if it cannot be predicted."""
        if not job.smiles:
            return []
        graphs, errors = self.molecules(job)
        rows: list[Row] = [{"id": name, "smiles": text} for name, text in zip(job.ids, job.smiles, strict=True)]
        for k, reason in errors.items():
            rows[k]["error"] = reason
        if graphs is not None:
            for k, row in zip(graphs.places.tolist(), self._rows(graphs), strict=True):
                rows[k] = row | rows[k]
        return rows

    def molecules(self, job: MoleculeRequest) -> tuple[GraphSet | None, dict[int, str]]:
        """The molecules that can be read and are not too large; and the reasons for rejecting the others."""
        from asapool.data.molecule_table import read_smiles_list
        from asapool.data.molecules import read_smiles

        smiles = job.smiles
        long = {k: len(text) for k, text in enumerate(smiles) if len(text) > LONGEST}
        short = ["" if k in long else text for k, text in enumerate(smiles)]
        try:
            options = ReadOptions(recipe=self.model.recipe, labels="ignored", skip_invalid=True)
            reading = read_smiles_list(short, options, job.descriptors)
            graphs: GraphSet | None = reading.graphs
            errors = {row.line: row.reason for row in reading.skipped}
        except AsapoolError:
            graphs = None
            errors = dict(read_smiles(short).failed)
            if len(errors) < len(smiles):  # some can be read, so the error is another one
                raise
        for place, length in long.items():
            errors[place] = f"the SMILES has {length} characters; at most {LONGEST} are allowed"
        if graphs is not None:
            sizes = np.diff(graphs.ptr)
            large = sizes > self.settings.max_nodes
            for place, size in zip(graphs.places[large].tolist(), sizes[large].tolist(), strict=True):
                errors[place] = f"the molecule has {size} atoms; at most {self.settings.max_nodes} are allowed"
            graphs = graphs if not large.any() else graphs.subset(np.flatnonzero(~large)) if not large.all() else None
        return graphs, errors

    def _rows(self, graphs: GraphSet) -> list[Row]:
        self.model.check(graphs)
        p, further = self.answering.answer(graphs, {})
        columns = columns_of((graphs, p), self.model.target, further=lambda graphs, p: further)
        rows = json_rows(columns, lambda value: f"{value:.6g}")
        return [{name: value for name, value in row.items() if name != "graph"} for row in rows]

    def graphs_of(self, job: MoleculeRequest | GraphSet) -> tuple[GraphSet | None, dict[int, str]]:
        """The graphs of a request, and the reasons for rejecting others."""
        return (job, {}) if isinstance(job, GraphSet) else self.molecules(job)

    def embed(self, job: MoleculeRequest | GraphSet) -> list[Row]:
        """The embedding of every graph, or an `error`."""
        from asapool.training.embeddings import embed

        graphs, errors = self.graphs_of(job)
        names = list(job.ids)
        rows: list[Row] = [{"id": name} for name in names]
        for k, reason in errors.items():
            rows[k]["error"] = reason
        if graphs is not None:
            places = range(len(graphs)) if isinstance(job, GraphSet) else graphs.places.tolist()
            for k, vector in zip(places, embed(self.model.model, graphs), strict=True):
                rows[k]["embedding"] = [round(float(v), 6) for v in vector]
        return rows

    def explain(self, job: MoleculeRequest | GraphSet, target: Any, occlusion: bool) -> Row:
        """The hierarchy of the first graph and its pictures, as SVG text."""
        import json

        from asapool.insight import explain
        from asapool.insight.importance import KINDS

        graphs, errors = self.graphs_of(job)
        if graphs is None or 0 in errors:
            raise Refusal(422, errors[0])
        if target is not None and not (isinstance(target, str) and target in self.model.classes):
            raise Refusal(422, f"target must be one of {', '.join(self.model.classes)[:300]}")
        kinds = ["attention", "gradient"] + ["occlusion"] * occlusion
        h = explain(self.model, graphs, 0, target=target, importance=kinds)
        pictures = [
            {"title": KINDS[kind].label, "text": KINDS[kind].meaning_for(h.kind), "svg": h.to_svg(0, kind)}
            for kind in reversed(list(h.importance))
        ]
        pictures += [
            {
                "title": f"Clusters, level {depth}",
                "text": f"{len(level)} kept clusters; a ring marks the medoid of each, arcs are pooled edges.",
                "svg": h.to_svg(depth),
            }
            for depth, level in enumerate(h.levels, 1)
        ]
        return {
            "hierarchy": json.loads(h.to_json()), "pictures": pictures, "about": h.about,
            "note": ". ".join(filter(None, (h.note, h.descriptor_note))),
            "neighbours": [] if self.neighbours is None else self.neighbours.of(graphs),
        }  # fmt: skip

    def card(self) -> Row:
        """What the service knows about its model."""
        card = model_card(self.model)
        del card["source"]  # a path on this machine is not for clients
        limits = {name: getattr(self.settings, name) for name in ("max_bytes", "max_graphs", "max_nodes", "seconds")}
        plain: Row = _finite(
            card
            | {
                "versions": {**card["versions"], "service": __version__},
                "conformal": self.answering.wanted.coverage,
                "limits": limits,
            }
        )
        return plain


def wanted_of(model: LoadedModel, coverage: float | None) -> Wanted:
    """All uncertainty columns that a model file supports.

    Args:
        model: the model.
        coverage: of conformal sets and intervals, refused if the model does not support it; None = USUAL_COVERAGE if
            it does, else no sets or intervals.
    """
    if coverage is not None:
        Answering(model, Wanted(uncertainty=True, coverage=coverage))
        return Wanted(uncertainty=True, coverage=coverage)
    if KEY in model.extra:
        for wanted in (Wanted(uncertainty=True, coverage=USUAL_COVERAGE), Wanted(uncertainty=True)):
            with suppress(AsapoolError):
                Answering(model, wanted)
                return wanted
    return Wanted()


def _finite(value: Any) -> Any:
    """Plain data for JSON, with null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
