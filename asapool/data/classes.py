"""Class labels, as any source writes them, become class numbers and the names behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, Literal

import numpy as np

from asapool.data.csr import Ints
from asapool.errors import DataError

Labels = Literal["required", "optional", "ignored"]
LABELS = ("required", "optional", "ignored")
MAX_CLASSES = 1000
MISSING = ("na", "n/a", "#n/a", "nan", "null", "none", "?", "-", "<na>")  # how tables write that there is no value


def as_text(label: Any) -> str | None:
    """Write a label as text, the same text for 1, 1.0 and "1.0"; None means there is no label.

    >>> [as_text(label) for label in (1, 1.0, "1.0", True, "toxic ", "", None, float("nan"))]
    ['1', '1', '1', 'true', 'toxic', None, None, None]
    """
    if label is None:
        return None
    if isinstance(label, (bool, np.bool_)):
        return "true" if label else "false"
    if isinstance(label, (int, np.integer)):
        return str(int(label))
    text = str(label).strip()
    if text == "" or text.lower() == "nan":
        return None
    number = _number(text)
    return str(int(number)) if number is not None and number.is_integer() and abs(number) < 1e15 else text


def cell_class(cell: Any, known: Sequence[str] | None, missing: MutableMapping[str, int]) -> str | None:
    """The class in a cell of a table, as as_text writes it; a word of MISSING is no label, and is counted in missing.

    A word among the known classes (of a model) is that class, whatever it looks like.

    >>> words = {}
    >>> [cell_class(cell, None, words) for cell in ("toxic", "N/A", "N/A", "")], words
    (['toxic', None, None, None], {'N/A': 2})
    """
    word = cell.strip() if isinstance(cell, str) else ""
    if word.lower() in MISSING and word not in (known or ()):
        missing[word] = missing.get(word, 0) + 1
        return None
    return as_text(cell)


def number_classes(
    labels: Sequence[str | None], where: str, classes: Sequence[str] | None = None, lines: Sequence[int] | None = None
) -> tuple[Ints, tuple[str, ...]]:
    """Number the classes in the order of their names: by value when all are numbers, else by alphabet.

    labels (G,) as as_text writes them; classes fixes the names and their order (a label not among them is refused);
    lines say where each label stands, for messages; returns y (G,) and the names.

    >>> number_classes(["1", "-1", None], "three graphs")
    (array([ 1,  0, -1]), ('-1', '1'))
    """
    present = {label for label in labels if label is not None}

    def refuse(label: str, reason: str) -> DataError:
        i = labels.index(label)
        return DataError(f"{where}, {f'line {lines[i]}' if lines is not None else f'graph {i}'}: {reason}")

    for label in sorted(present):
        value = _number(label)
        if value is not None and math.isfinite(value) and not value.is_integer():
            raise refuse(label, f"expected a class, got the measured value {label!r}. Make classes of the values first")
        if classes is not None and label not in classes:
            known = ", ".join(map(repr, classes))
            raise refuse(label, f"class {label!r}, expected one of {known}. Drop the labels to predict without them")
    if len(present) > MAX_CLASSES:
        raise DataError(
            f"{where}: {len(present):,} different labels, at most {MAX_CLASSES:,} can be classes. Name another column"
        )
    names = tuple(_in_order(present) if classes is None else classes)
    number = {name: k for k, name in enumerate(names)}
    return np.fromiter((-1 if label is None else number[label] for label in labels), np.int64, len(labels)), names


def check_labels(y: Ints, where: str, labels: Labels) -> None:
    """Refuse a set to learn from when it has no labels, or one class only."""
    if labels != "required":
        return
    missing = int((y < 0).sum())
    if missing == len(y):
        raise DataError(f"{where}: there are no class labels. Add them, or read with labels='optional' to predict only")
    kinds = np.unique(y[y >= 0])
    if len(kinds) == 1:
        raise DataError(
            f"{where}: all {len(y) - missing} labelled graphs are of one class, and a classifier needs two. "
            "Add graphs of another class, or read with labels='optional' to predict only"
        )


def _in_order(present: Iterable[str]) -> list[str]:
    numbers = {label: _number(label) for label in present}
    if all(value is not None and math.isfinite(value) for value in numbers.values()):
        return sorted(numbers, key=lambda label: (numbers[label], label))
    return sorted(numbers)


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
