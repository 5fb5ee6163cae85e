"""Target: what a set of graphs is labelled with, and how text cells become its values.

kind             y                                           missing
classification   (G,) int64, class index                     -1
regression       (G, T) float64, measured values             NaN
multilabel       (G, T) float64, 0 or 1 for every task       NaN
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data.classes import UNLABELLED, Labels, check_labels, differing_in_case, number_classes
from asapool.data.decimal_commas import DECIMAL_COMMA, decimal_comma
from asapool.errors import AsapoolError, DataError, choose

Kind = Literal["classification", "regression", "multilabel"]
KINDS = ("classification", "regression", "multilabel")
FEW = 5  # whole numbers with more distinct values than this are measured values, not classes
UNIT = re.compile(r".*[\[(]([^\[\]()]+)[\])]\s*")
LIMIT = re.compile(r"[<>≤≥~≈]\s*=?\s*[+-]?\.?\d.*")  # <0.5: beyond what could be measured
QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*(?P<unit>[%µμ]?[A-Za-z/%]{0,8})")  # 1.2 uM
YES_NO = (("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("inactive", "active"), ("-1", "1"))


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the graphs are labelled with.

    Args:
        kind: "classification", "regression" or "multilabel".
        names: one per task; classification has one task.
        classes: the class names; for "multilabel" the words for no and yes.
        units: one per task, "" if unknown; read from names such as "solubility [mol/l]".
        mean: for regression, the mean of the training graphs per task; empty before training.
        scale: their standard deviation; a model's output z stands for z · scale + mean.

    >>> Target(kind="regression", names=("logS [mol/l]",)).units
    ('mol/l',)
    """

    kind: Kind = "classification"
    names: tuple[str, ...] = ("label",)
    classes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        choose("task", self.kind, KINDS)
        if not self.names or (self.kind == "classification" and len(self.names) != 1):
            raise DataError(f"a {self.kind} target needs {'one name' if self.names else 'a name'}, got {self.names}")
        if len(set(self.names)) < len(self.names):
            raise DataError(f"every target needs a unique name, got {', '.join(map(repr, self.names))}")
        if not self.units:
            object.__setattr__(self, "units", tuple(_unit(name) for name in self.names))
        if len(self.units) != len(self.names):
            raise DataError(f"{len(self.units)} units for {len(self.names)} targets. Give one per target")
        sizes = (len(self.mean), len(self.scale))
        if sizes != (0, 0) and (self.kind != "regression" or sizes != (len(self.names), len(self.names))):
            raise DataError(f"mean and scale belong to regression, one number per task, got {sizes[0]} and {sizes[1]}")
        if not all(map(math.isfinite, self.mean)) or not all(math.isfinite(s) and s > 0 for s in self.scale):
            raise DataError("mean must be finite numbers and scale numbers above 0")

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of a model's outputs: the classes for classification, else the tasks."""
        return self.classes if self.kind == "classification" else self.names

    @property
    def noun(self) -> str:
        """What the outputs are: "classes" or "tasks"."""
        return "classes" if self.kind == "classification" else "tasks"

    @property
    def outputs(self) -> int:
        """Number of outputs of a model."""
        return len(self.output_names)

    def matches(self, other: Target) -> bool:
        """Whether values of the other target mean the same: kind, tasks and classes are equal."""
        return (self.kind, self.output_names) == (other.kind, other.output_names)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; mean and scale are left out before training."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if value or name not in ("mean", "scale")}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Target:
        """The inverse of to_dict."""
        try:
            lists = {name: tuple(map(str, value.get(name, ()))) for name in ("names", "classes", "units")}
            mean, scale = (tuple(map(float, value.get(name, ()))) for name in ("mean", "scale"))
            return cls(kind=value["kind"], **lists, mean=mean, scale=scale)
        except AsapoolError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"the description of the target is incomplete ({error})") from None


class Labelled(NamedTuple):
    """Label cells as values."""

    y: npt.NDArray[Any]
    target: Target
    notes: tuple[str, ...] = ()


def read_targets(
    columns: Mapping[str, Sequence[str | None]],
    where: str,
    *,
    rule: Labels = "required",
    task: str | None = None,
    known: Target | None = None,
    classes: Sequence[str] | None = None,
    lines: Sequence[int] | None = None,
) -> Labelled:
    """Turn text columns into y.

    Args:
        columns: one per task, name → cells as asapool.data.classes.as_text gives them; None = missing.
        where: the source, for messages.
        rule: whether labels are required.
        task: the kind of target; None = inferred from the values.
        known: the target of a recipe, which new data must follow.
        classes: the class names, if known.
        lines: the line of every cell, for messages.

    >>> read_targets({"y": ["1.5", None, "2"]}, "three graphs").y.tolist()
    [[1.5], [nan], [2.0]]
    """
    notes: list[str] = []
    kind = known.kind if known is not None else task or _detect(columns, where, notes, lines)
    if kind == "classification":
        if len(columns) != 1:
            raise DataError(
                f"{where}: {len(columns)} target columns are several tasks, and classification has one. "
                "Name one column with --target, or choose --task multilabel or --task regression (task='regression')"
            )
        ((name, cells),) = columns.items()
        y, names = number_classes(cells, where, classes, lines)
        check_labels(y, where, rule)
        if classes is None:
            notes += [f"{where}: {text}" for text in differing_in_case(names)]
        return Labelled(y, Target(names=(name,), classes=names), tuple(notes))
    words = _yes_no(columns, where, lines) if kind == "multilabel" and known is None else known.classes if known else ()
    values = np.stack([_numbers(name, cells, kind, words, where, lines) for name, cells in columns.items()], axis=1)
    _check_values(values, list(columns), where, rule)
    if kind == "regression" and known is None:
        notes += [f"{where}: {text}" for text in _wide_ranges(values, list(columns))]
    target = known or Target(kind=kind, names=tuple(columns), classes=tuple(words))  # type: ignore[arg-type]
    return Labelled(values, target, tuple(notes))


WIDE = 100  # ratio of the 95th to the 5th percentile; it is 19 if values are spread evenly from 0


def _wide_ranges(values: npt.NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """A note for every task whose values are positive and span orders of magnitude, such as concentrations.

    >>> _wide_ranges(np.array([[1.0, 1.0], [10.0, 2.0], [1e5, 3.0]]), ["IC50", "pIC50"])[0][:43]
    "the values of 'IC50' span several orders of"
    """
    notes = []
    for name, column in zip(names, values.T, strict=True):
        present = column[~np.isnan(column)]
        if len(present) and present.min() > 0:
            low, high = np.quantile(present, (0.05, 0.95))
            if high > WIDE * low:
                notes.append(
                    f"the values of {name!r} span several orders of magnitude ({present.min():.3g} to "
                    f"{present.max():.3g}), so the largest decide what is learned. Their logarithm, such as pIC50 for "
                    "IC50, is usually easier to predict"
                )
    return notes


def empty_values(target: Target, G: int) -> npt.NDArray[Any]:
    """y of G graphs without labels."""
    if target.kind == "classification":
        return np.full(G, -1, np.int64)
    return np.full((G, target.tasks), np.nan)


def _detect(
    columns: Mapping[str, Sequence[str | None]], where: str, notes: list[str], lines: Sequence[int] | None
) -> str:
    """Infer the kind of target from the values."""
    present = {name: {cell for cell in cells if cell is not None} for name, cells in columns.items()}
    if len(columns) > 1:
        binary = any(all(cells <= set(pair) for cells in present.values()) for pair in YES_NO)
        notes.append(
            f"{where}: the {len(columns)} targets hold yes or no and are treated as yes/no tasks (multilabel)"
            if binary
            else f"{where}: the {len(columns)} targets are treated as measured values (regression). "
            "--task multilabel (task='multilabel') is for columns of yes or no"
        )
        return "multilabel" if binary else "regression"
    ((name, cells),) = present.items()
    numbers = [_number(cell) for cell in cells]
    texts = {cell for cell, number in zip(cells, numbers, strict=True) if number is None}
    if texts and all(map(DECIMAL_COMMA.fullmatch, texts)):
        k = next(k for k, cell in enumerate(columns[name]) if cell in texts)
        raise decimal_comma(name, str(columns[name][k]), f"{where}, {_at(k, lines)}")
    if texts:
        _refuse_text(name, columns[name], texts, where, lines)
    if not cells or texts:
        return "classification"
    if all(_is_whole(number) for number in numbers if number is not None) and len(cells) <= FEW:
        return "classification"
    notes.append(
        f"{where}: {name!r} has {len(cells):,} different numbers and is treated as measured values (regression). "
        "--task classification (task='classification') treats whole numbers as classes"
    )
    return "regression"


def _refuse_text(
    name: str, cells: Sequence[str | None], texts: set[str], where: str, lines: Sequence[int] | None
) -> None:
    """Refuse text in a column of measured values: fractions, many whole numbers, limits or quantities with a unit."""
    numbers = {cell for cell in cells if cell is not None and cell not in texts}
    units = Counter(match["unit"] for match in map(QUANTITY.fullmatch, texts) if match)
    measured = (
        any(not _is_whole(float(number)) for number in numbers)
        or any(map(LIMIT.fullmatch, texts))
        or max([len(numbers), *units.values()]) > FEW
    )
    if not measured:
        return
    k = next(k for k, cell in enumerate(cells) if cell in texts)
    number = next((cell for cell in cells if cell in numbers), None)
    among = f" among numbers such as {number}" if number is not None else ", and a measured value is a plain number"
    raise DataError(
        f"{where}, {_at(k, lines)}: {name!r} has the text {str(cells[k])[:40]!r}{among}. "
        "Write a number without limit or unit, or leave it empty; if the values are classes, add --task classification "
        "(task='classification')"
    )


def _yes_no(columns: Mapping[str, Sequence[str | None]], where: str, lines: Sequence[int] | None) -> tuple[str, str]:
    """The words for no and yes that all columns use."""
    present = {cell for cells in columns.values() for cell in cells if cell is not None}
    lower = {cell.lower() for cell in present}
    for pair in YES_NO:
        if lower <= set(pair):
            return pair
    known = {word for pair in YES_NO for word in pair}
    for name, cells in columns.items():
        for k, cell in enumerate(cells):
            if cell is not None and cell.lower() not in known:
                raise DataError(
                    f"{where}, {_at(k, lines)}: {name!r} has {cell[:40]!r}, and a yes/no column holds 0 and 1, or no "
                    "and yes"
                )
    raise DataError(f"{where}: the columns use different words for yes and no. Write 0 and 1 in all of them")


def _numbers(
    name: str, cells: Sequence[str | None], kind: str, words: Sequence[str], where: str, lines: Sequence[int] | None
) -> npt.NDArray[np.float64]:
    values = np.full(len(cells), np.nan)
    for k, cell in enumerate(cells):
        if cell is None:
            continue
        number = _number(cell)
        if kind == "multilabel":
            low = cell.lower()
            number = float(list(words).index(low)) if low in words else float(cell) if cell in ("0", "1") else None
        if number is None or not math.isfinite(number):
            at = _at(k, lines)
            if kind == "regression" and DECIMAL_COMMA.fullmatch(cell):
                raise decimal_comma(name, cell, f"{where}, {at}")
            expected = f"{words[0]} or {words[1]}" if kind == "multilabel" else "a finite number"
            raise DataError(
                f"{where}, {at}: expected {expected} for {name!r}, got {cell[:40]!r}. Correct it, or leave it empty"
            )
        values[k] = number
    return values


def _at(k: int, lines: Sequence[int] | None) -> str:
    return f"line {lines[k]}" if lines is not None else f"graph {k}"


def _check_values(values: npt.NDArray[np.float64], names: Sequence[str], where: str, rule: Labels) -> None:
    """Refuse a set to learn from if a task has no values, or if all tasks are constant."""
    if rule != "required":
        return
    for t, name in enumerate(names):
        present = values[~np.isnan(values[:, t]), t]
        if not len(present):
            raise DataError(f"{where}: all entries of {name!r} are missing. Leave this column out, or add values")
    if all(len(np.unique(column[~np.isnan(column)])) == 1 for column in values.T):
        raise DataError(
            f"{where}: all entries of {', '.join(map(repr, names))} are equal, so there is nothing to learn. "
            f"Add graphs with other values {UNLABELLED}"
        )


def _unit(name: str) -> str:
    match = UNIT.fullmatch(name)
    return match[1].strip() if match else ""


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None


def _is_whole(number: float) -> bool:
    return math.isfinite(number) and number.is_integer()
