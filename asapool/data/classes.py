"""Turns the class labels of any source into class numbers and class names."""

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
UNLABELLED = "(in Python, labels='optional' reads graphs without labels)"
MISSING = ("na", "n/a", "#n/a", "nan", "null", "none", "?", "-", "<na>")  # how tables mark a missing value


def as_text(label: Any) -> str | None:
    """A label as text, the same text for 1, 1.0 and "1.0"; None = no label.

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
    """The class in a cell of a table, as as_text gives it; a value of MISSING is no label and is counted in missing.

    A value among the known classes (of a model) is always that class.

    >>> missing = {}
    >>> [cell_class(cell, None, missing) for cell in ("toxic", "N/A", "N/A", "")], missing
    (['toxic', None, None, None], {'N/A': 2})
    """
    text = cell.strip() if isinstance(cell, str) else ""
    if text.lower() in MISSING and text not in (known or ()):
        missing[text] = missing.get(text, 0) + 1
        return None
    return as_text(cell)


def number_classes(
    labels: Sequence[str | None], where: str, classes: Sequence[str] | None = None, lines: Sequence[int] | None = None
) -> tuple[Ints, tuple[str, ...]]:
    """Number the classes in the order of their names: by value if all are numbers, else alphabetically.

    labels (G,) as as_text gives them; classes fixes the names and their order (other labels are refused);
    lines gives the line of each label, for messages; returns y (G,) and the names.

    >>> number_classes(["1", "-1", None], "three graphs")
    (array([ 1,  0, -1]), ('-1', '1'))
    """
    present = {label for label in labels if label is not None}

    def error(label: str, reason: str) -> DataError:
        i = labels.index(label)
        return DataError(f"{where}, {f'line {lines[i]}' if lines is not None else f'graph {i}'}: {reason}")

    for label in sorted(present):
        value = _number(label)
        if value is not None and math.isfinite(value) and not value.is_integer():
            raise error(label, f"expected a class, got the measured value {label!r}. Bin the values into classes first")
        if classes is not None and label not in classes:
            known = ", ".join(map(repr, classes))
            raise error(label, f"class {label!r}, expected one of {known}. Drop the labels to predict without them")
    if len(present) > MAX_CLASSES:
        raise DataError(
            f"{where}: {len(present):,} different labels, at most {MAX_CLASSES:,} can be classes. Name another column"
        )
    names = tuple(_in_order(present) if classes is None else classes)
    number = {name: k for k, name in enumerate(names)}
    return np.fromiter((-1 if label is None else number[label] for label in labels), np.int64, len(labels)), names


def differing_in_case(names: Sequence[str]) -> list[str]:
    """A note if names of classes differ only in upper and lower case.

    >>> differing_in_case(["No", "Yes", "no"])
    ["the classes 'No', 'no' differ only in case and are kept apart. Correct the file if they are the same class"]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.casefold(), []).append(name)
    groups = [", ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    if not groups:
        return []
    return [
        f"the classes {' and '.join(groups)} differ only in case and are kept apart. "
        "Correct the file if they are the same class"
    ]


def check_labels(y: Ints, where: str, labels: Labels) -> None:
    """Refuse a set to learn from if it has no labels, or only one class."""
    if labels != "required":
        return
    missing = int((y < 0).sum())
    if missing == len(y):
        raise DataError(f"{where}: there are no class labels. Add them {UNLABELLED}")
    if len(np.unique(y[y >= 0])) == 1:
        known = len(y) - missing
        same = "only one graph is labelled" if known == 1 else f"all {known} labelled graphs are of one class"
        raise DataError(
            f"{where}: {same}, and a classifier needs two classes. Add graphs of another class {UNLABELLED}"
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
