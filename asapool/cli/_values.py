"""What the text of an option stands for: settings, splits, a model file, a list of names."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asapool.errors import ConfigError

SPLITS = ("stratified", "scaffold", "authors", "stratified-folds", "scaffold-folds")
FOLD_SPLITS = ("authors", "stratified-folds", "scaffold-folds", "stratified", "scaffold")  # short: the same in 0.1


def with_settings(tables: dict[str, dict[str, Any]], assignments: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Add the assignments of --set; values are TOML, with optional quotes.

    >>> with_settings({"model": {}}, ["model.jumping=true", "model.conv=gin", "train.clip=1.5"])
    {'model': {'jumping': True, 'conv': 'gin'}, 'train': {'clip': 1.5}}
    """
    for text in assignments or ():
        place, equals, value = text.partition("=")
        table, dot, name = place.strip().partition(".")
        if not equals or not dot or table not in ("data", "split", "model", "train"):
            raise ConfigError(
                f"--set takes TABLE.NAME=VALUE with the tables data, split, model and train, got {text!r}"
            )
        try:
            tables.setdefault(table, {})[name] = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            tables.setdefault(table, {})[name] = value.strip()
    return tables


def split_table(split: str | None) -> dict[str, Any]:
    """The table `split` of a run's settings, from --split.

    >>> split_table("scaffold")
    {'kind': 'scaffold'}
    """
    if split is None:
        return {}
    if split in SPLITS:
        return {"kind": split}
    if not Path(split).is_file():
        raise ConfigError(f"--split takes {', '.join(SPLITS)} or a split file, got {split!r}")
    return {"kind": "file", "file": str(Path(split).resolve())}


def fold_options(split: str, splits: Path | None, folds: int) -> dict[str, Any]:
    """How a cross-validation makes its folds, from --split, --splits and --folds.

    >>> fold_options("scaffold-folds", None, 5)
    {'folds': 5, 'protocol': 'scaffold'}
    """
    if splits is None and split in FOLD_SPLITS:
        return {"folds": folds, "protocol": split.removesuffix("-folds")}
    if splits is None and not Path(split).is_file():
        raise ConfigError(f"--split takes {', '.join(FOLD_SPLITS)} or a file of published splits, got {split!r}")
    return {"splits": splits or Path(split)}


def model_file(model: Path) -> Path:
    """The file of a model: the path itself, or model.safetensors in a run folder."""
    from asapool.models.model_path import find

    return find(model)


def words_of(text: str, option: str) -> list[str]:
    """The values of a comma-separated option, without repetitions.

    >>> words_of("asap, topk", "--methods")
    ['asap', 'topk']
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or len(set(words)) < len(words):
        raise ConfigError(f"{option} takes distinct names separated by commas, got {text!r}")
    return words
