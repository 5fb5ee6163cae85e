"""Settings that follow from the method and the data set, the authors' ones among them, and the seeds of their runs."""

from __future__ import annotations

import math
from typing import Any

from asapool.models.methods import method as find_method

AUTHORS_SEEDS = (
    8971, 85688, 9467, 32830, 28689, 94845, 69840, 50883, 74177, 79585,
    1055, 75631, 6825, 93188, 95426, 54514, 31467, 70597, 71149, 81994,
)  # fmt: skip

# batch size, width, dropout of the attention, learning rate
_TABLE = {
    "PROTEINS": (128, 64, 0.1, 0.01),
    "FRANKENSTEIN": (128, 32, 0.0, 0.001),
    "NCI1": (128, 128, 0.0, 0.01),
    "NCI109": (128, 128, 0.0, 0.01),
    "DD": (64, 16, 0.3, 0.01),
}
_TABLE["D&D"] = _TABLE["DD"]
_TABLE["Mutagenicity"] = _TABLE["FRANKENSTEIN"]  # the molecules that FRANKENSTEIN was made of


DEFAULT_METHOD = "asap+"  # of train, cv, compare and the estimator

# what follows from the size of a data set, for methods with a schedule of their own: graphs below which it holds
SIZES: tuple[tuple[float, dict[str, dict[str, Any]]], ...] = (
    (2_000, {"model": {"hidden": 32}, "train": {"epochs": 20, "lr": 0.001}}),
    (20_000, {"model": {"hidden": 64}, "train": {"epochs": 40, "lr": 0.005}}),
    (math.inf, {"model": {"hidden": 64}, "train": {"epochs": 15, "lr": 0.005}}),
)


def preset(name: str, method: str = "asap", graphs: int | None = None) -> dict[str, dict[str, Any]]:
    """The tables [model] and [train] for a data set of that name and size and a method.

    A method with a schedule of its own has that one on every data set, with a width and a number of epochs that follow
    from the number of graphs; the others have the authors' settings of the data sets that the authors used.

    >>> preset("DD")
    {'model': {'hidden': 16, 'attention_dropout': 0.3}, 'train': {'batch_size': 64, 'lr': 0.01}}
    >>> preset("my molecules")
    {'model': {}, 'train': {}}
    >>> preset("DD", "asap+", graphs=1178)["model"], preset("DD", "asap+", graphs=1178)["train"]["schedule"]
    ({'hidden': 32}, 'onecycle')
    """
    entry = find_method(method, "model.method")
    if entry.schedule:
        size = {} if graphs is None else next(tables for most, tables in SIZES if graphs < most)
        return {"model": dict(size.get("model", {})), "train": dict(entry.schedule) | size.get("train", {})}
    known = {key.lower(): value for key, value in _TABLE.items()}
    if name.lower() not in known:
        return {"model": {}, "train": {}}
    batch, hidden, dropout, lr = known[name.lower()]
    return {"model": {"hidden": hidden, "attention_dropout": dropout}, "train": {"batch_size": batch, "lr": lr}}


def seeds(count: int) -> tuple[int, ...]:
    """The first of the authors' seeds; beyond their twenty, numbers that follow from the count alone.

    >>> seeds(2), len(set(seeds(30)))
    ((8971, 85688), 30)
    """
    return AUTHORS_SEEDS[:count] + tuple(100_000 + k for k in range(len(AUTHORS_SEEDS), count))
