"""The authors' settings per data set, and the seeds of their twenty runs."""

from __future__ import annotations

from typing import Any

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


def preset(name: str) -> dict[str, dict[str, Any]]:
    """The tables [model] and [train] for a data set of that name; empty for one the authors did not use.

    >>> preset("DD")
    {'model': {'hidden': 16, 'attention_dropout': 0.3}, 'train': {'batch_size': 64, 'lr': 0.01}}
    >>> preset("my molecules")
    {'model': {}, 'train': {}}
    """
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
