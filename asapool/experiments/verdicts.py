"""What became of the paper's claims in words: each holds, does not, is too close to call, or has too few trainings.

Rows are compared on the seeds that both have finished with all folds, so that an unfinished table says nothing rash. A
difference counts where the paired test over these folds finds it unlikely to be chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from asapool.experiments.paper import SETS, STAND_INS, Statement, canonical, claims
from asapool.experiments.tables import Table
from asapool.training.significance import paired_test

Word = Literal["holds", "does not hold", "too close to call", "not enough runs"]
WORST: tuple[Word, ...] = ("does not hold", "not enough runs", "too close to call", "holds")  # the first one decides
SURE = 0.05  # p value below which a difference counts
STEADY = 3  # seeds that a deviation needs before it is compared
RISING = 0.6  # rank correlation: with nine values a chance of 5 % to be reached without any trend


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim in one column."""

    column: str
    verdict: Word
    told: str  # the numbers
    other: bool = False  # the column is no data set of the paper, and has no say in the claim's verdict


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim, what became of it, and why."""

    words: str
    verdict: Word
    findings: tuple[Finding, ...]

    @property
    def told(self) -> str:
        """The numbers of all columns in one line."""
        return "; ".join(f"{f.column}{' (other data)' if f.other else ''}: {f.told}" for f in self.findings)

    @property
    def judged(self) -> tuple[str, ...]:
        """The columns that have a say in the verdict and enough trainings for one."""
        return tuple(f.column for f in self.findings if not f.other and f.verdict != "not enough runs")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"findings": [asdict(finding) for finding in self.findings]}


def judge(table: Table) -> list[Verdict]:
    """Hold the claims about a table against it; the columns that the paper does not have are left out."""
    columns = [c for c in table.columns if canonical(c) in (*SETS, *STAND_INS)]
    verdicts = []
    for statement in claims(table.name):
        if statement.kind == "gain":
            own = [c for c in columns if canonical(c) in SETS]
            found = [_gain(table, statement, own)] if own else []
        else:
            found = [_in_column(table, statement, column) for column in columns]
            there = {canonical(column) for column in columns}
            absent = [name for name in SETS if name not in there] if statement.everywhere and found else []
            found += [Finding(column=name, verdict="not enough runs", told="not in the table") for name in absent]
        verdicts.append(Verdict(words=statement.words, verdict=_overall(found), findings=tuple(found)))
    return verdicts


def _overall(found: Sequence[Finding]) -> Word:
    return _worst([finding.verdict for finding in found if not finding.other])


def _in_column(table: Table, statement: Statement, column: str) -> Finding:
    look: dict[str, Callable[[Table, Statement, str], tuple[Word, str]]] = {
        "above": _above, "steadier": _steadier, "rising": _rising
    }  # fmt: skip
    verdict, told = look[statement.kind](table, statement, column)
    return Finding(column=column, verdict=verdict, told=told, other=canonical(column) in STAND_INS)


def _above(table: Table, statement: Statement, column: str) -> tuple[Word, str]:
    said: list[tuple[str, str, int]] = []
    words: list[Word] = []
    for first, second in statement.pairs:
        both = _common(table, column, (first, second))
        if both is None:
            words.append("not enough runs")
            continue
        word, gap = _compared(both, statement.ties)
        words.append(word)
        said.append((first, f"{_gap(gap)} over {second}", both.shape[1]))
    return _worst(words), _together(said) or "no seed is finished in both rows"


def _compared(both: np.ndarray[Any, np.dtype[np.float64]], ties: bool) -> tuple[Word, float]:
    """Whether the first row is above the second, and by how much; (2, seeds, folds)."""
    gap = round(float(np.mean(both[0]) - np.mean(both[1])), 6)
    if np.array_equal(both[0], both[1]):
        return "holds" if ties else "does not hold", gap
    # one fold is tested on and one validated on, so that the test part is 1 / (folds − 2) of the training part
    p = paired_test(both[0].ravel(), both[1].ravel(), test_share=1 / (both.shape[2] - 2)).p_corrected_t
    if p is not None and p >= SURE:
        return "too close to call", gap
    return "holds" if gap > 0 else "does not hold", gap


def _steadier(table: Table, statement: Statement, column: str) -> tuple[Word, str]:
    said: list[tuple[str, str, int]] = []
    words: list[Word] = []
    for first, second in statement.pairs:
        both = _common(table, column, (first, second))
        if both is None or both.shape[1] < STEADY:
            words.append("not enough runs")
            continue
        a, b = (float(np.std(row.mean(axis=1), ddof=1)) for row in both)
        words.append("holds" if a < b else "does not hold")
        said.append((f"{first} ± {a:.2f} against", f"± {b:.2f} of {second}", both.shape[1]))
    return _worst(words), _together(said) or f"a deviation needs {STEADY} finished seeds in both rows"


def _together(said: Sequence[tuple[str, str, int]]) -> str:
    """Pairs with the same beginning and as many seeds in one breath.

    >>> _together([("a", "+1 over b", 3), ("a", "+2 over c", 3), ("b", "+1 over c", 1)])
    'a +1 over b, +2 over c (3 seeds); b +1 over c (1 seed)'
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for first, rest, seeds in said:
        groups.setdefault((first, seeds), []).append(rest)
    return "; ".join(
        f"{first} {', '.join(rest)} ({seeds} {'seed' if seeds == 1 else 'seeds'})"
        for (first, seeds), rest in groups.items()
    )


def _rising(table: Table, statement: Statement, column: str) -> tuple[Word, str]:
    rows = [row for row in table.rows if table.cell(row, column) is not None]
    values = _common(table, column, rows) if len(rows) > 2 else None
    if values is None:
        return "not enough runs", "no seed is finished in all rows"
    means = values.mean(axis=(1, 2))  # (rows,)
    rank = _rank_correlation(means)
    gap = float(means[-1] - means[0])
    holds = rank >= RISING and gap > 0
    told = f"rank correlation {rank:.2f}, {rows[-1]} {_gap(gap)} over {rows[0]}"
    return ("holds" if holds else "does not hold"), told


def _gain(table: Table, statement: Statement, columns: Sequence[str]) -> Finding:
    first, second = statement.pairs[0]
    pairs = [_common(table, column, (first, second)) for column in columns]
    there = [pair for pair in pairs if pair is not None]
    name = f"{len(there)} of {len(SETS)} data sets"
    if len(there) < len(SETS):
        return Finding(column=name, verdict="not enough runs", told="the claim is about the mean over five data sets")
    a, b = (float(np.mean([pair[k].mean() for pair in there])) for k in range(2))
    gain = 100 * (a - b) / b
    word: Word = "holds" if gain >= statement.least else "does not hold"
    return Finding(column=name, verdict=word, told=f"{a:.2f} against {b:.2f}: {gain:+.1f} %")


def _common(table: Table, column: str, rows: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Accuracies on the seeds that all rows have finished, (rows, seeds, folds); None if there is no such seed."""
    found = []
    for row in rows:
        cell = table.cell(row, column)
        if cell is None:
            return None
        found.append(cell.whole_seeds(table.folds))
    seeds = [seed for seed in found[0] if all(seed in other for other in found)]
    return np.array([[whole[seed] for seed in seeds] for whole in found]) if seeds else None


def _rank_correlation(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Spearman's, of the values with their places; 0 where all are equal."""
    from scipy.stats import rankdata

    rank = rankdata(np.round(values, 9))
    return 0.0 if np.ptp(rank) == 0 else float(np.corrcoef(rank, np.arange(len(rank)))[0, 1])


def _worst(words: Sequence[Word]) -> Word:
    return next((word for word in WORST if word in words), "not enough runs")


def _gap(gap: float) -> str:
    return f"{gap:+.2f}".replace("-", "−")

