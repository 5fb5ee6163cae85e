"""`asapool compare`: several methods on the same folds, with paired tests, in one table."""

from __future__ import annotations

from typing import Annotated

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli.cv import _data, cross

ALL = "asap,topk,sagpool,diffpool,set2set,global-attention,sortpool,none,mlp"


def compare(
    source: Annotated[str, typer.Argument(help=o.SOURCE)],
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas; the others are tested against the first.")
    ] = ALL,
    folds: o.Folds = 10,
    seeds: o.Seeds = 1,
    jobs: e.Jobs = None,
    epochs: o.Epochs = None,
    seed: Annotated[int | None, typer.Option(min=0, help="First seed, instead of the authors' list.")] = None,
    out: o.Out = None,
    protocol: o.Protocol = "authors",
    hidden: o.Hidden = None,
    semantics: o.Semantics = None,
    batch_size: o.BatchSize = None,
    lr: o.Lr = None,
    features: o.Features = None,
    data_root: o.DataRoot = None,
    smiles: o.Smiles = None,
    target: o.Target = None,
    skip_invalid: o.Skip = False,
    config: o.Config = None,
    settings: o.Settings = None,
    engine: e.Engine = "local",
    address: e.Address = None,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Cross-validate several methods on the same folds and test whether they differ.

    The paired tests are the corrected resampled t-test (folds share training graphs) and Wilcoxon's. Finished folds are
    kept: the same command again goes on where it was stopped.
    """
    tables = o.with_settings(
        {
            "data": _data(source, features, data_root, smiles, target, skip_invalid),
            "model": {"hidden": hidden, "semantics": semantics},
            "train": {"epochs": epochs, "batch_size": batch_size, "lr": lr},
        },
        settings,
    )
    names = o.words_of(methods, "--methods")
    by = (engine, address, jobs)
    cross(tables, names, "compare", config, folds, seeds, seed, protocol, by, out, json, no_report)
