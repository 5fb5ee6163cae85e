"""`asapool compare`: several methods on the same folds, with paired tests, in one table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli.cv import CrossOptions, cross_validate_methods


def compare(
    source: o.Source,
    *,
    data: o.DataOptions,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            rich_help_panel=o.MODEL,
            help="Methods, separated by commas; each is tested against the first.",
            show_default="all poolings and the two networks without",
        ),
    ] = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    cross: CrossOptions,
    engine: e.EngineOptions,
) -> None:
    """Cross-validate several methods on the same folds and test whether they differ.

    The paired tests are the corrected resampled t-test (folds share training graphs) and Wilcoxon's. Finished folds are
    kept: run the same command again to resume.
    """
    tables = {"data": data.table(source), "model": asdict(model), "train": asdict(training)}
    names = o.words_of(methods, "--methods") if methods is not None else _networks()
    cross_validate_methods(tables, names, "compare", cross, engine)


def _networks() -> list[str]:
    from asapool.models.methods import method_names

    return list(method_names(trainer="gradient", builtin=True))
