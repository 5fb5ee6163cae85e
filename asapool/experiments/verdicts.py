"""Verdicts based on tests: on the paper's claims in words, and whether one row is ahead of the others.

A claim holds, does not hold, is too close to call, or has too few training runs. Rows are compared on the seeds for
which both have finished all folds. "Holds" and "does not hold" both need a significant test or an interval, see HOW.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from asapool.experiments.paper import SETS, STAND_INS, PaperClaim, canonical, claims, paper_gain
from asapool.experiments.significance import Values, higher, holm, interval, paired_test, rising, steadier, test_share
from asapool.experiments.summary import headline_named
from asapool.experiments.table_text import number, p_value, signed

if TYPE_CHECKING:
    from asapool.experiments.cells import TableCell
    from asapool.experiments.record import RunRecord
    from asapool.experiments.tables import Table

Word = Literal["holds", "does not hold", "too close to call", "not enough runs"]
WORST: tuple[Word, ...] = ("does not hold", "not enough runs", "too close to call", "holds")  # the first one decides
SURE = 0.05  # p value below which a difference is significant
STEADY = 3  # seeds needed to compare deviations
EASY = tuple(name for name in SETS if name not in STAND_INS.values())  # the files of FRANKENSTEIN are hard to find
HOW = {
    "above": "A row counts as above or below another if the corrected paired t-test on the folds of their shared "
    "seeds gives p < 0.05 after Holm's adjustment for all pairs of the claim; ± is the 95 % interval of the difference "
    "by the same test, without the adjustment.",
    "steadier": "A deviation counts as smaller or larger if the Pitman-Morgan test on the means of the "
    "shared seeds gives p < 0.05 after Holm's adjustment for all pairs of the claim.",
    "rising": "Accuracy counts as rising or falling if its rank correlation with the rows, taken fold by fold, "
    "differs from 0 in the corrected t-test with p < 0.05 after Holm's adjustment for all data sets of the claim.",
    "gain": "A gain counts as reached or missed if the 95 % t-interval of the relative gains of the shared seeds "
    "lies entirely on one side of the claimed one; without FRANKENSTEIN that is the gain of the paper's own numbers on "
    "the other four data sets.",
}
ABSENT = "not in the table"
MISSING = {
    "above": "no seed is finished in both rows",
    "steadier": f"a deviation needs {STEADY} finished seeds in both rows",
    "rising": "no seed is finished in all rows",
}


class Compared(NamedTuple):
    """One comparison of a claim in a column: its text, the effect (positive: as claimed), and its p value."""

    first: str
    rest: str
    seeds: int
    effect: float
    p: float


@dataclass(frozen=True, kw_only=True)
class ColumnVerdict:
    """A claim in one column."""

    column: str
    verdict: Word
    numbers: str
    other: bool = False  # not a data set of the paper, so it does not count in the verdict on the claim


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a claim, with its reasons."""

    words: str
    verdict: Word
    how: str  # the criterion, in one sentence
    findings: tuple[ColumnVerdict, ...]

    @property
    def numbers(self) -> str:
        """The numbers of all columns in one line."""
        return "; ".join(f"{f.column}{' (other data)' if f.other else ''}: {f.numbers}" for f in self.findings)

    @property
    def decided_on(self) -> tuple[str, ...]:
        """The columns that count in the verdict and have enough training runs for one."""
        return tuple(f.column for f in self.findings if not f.other and f.verdict != "not enough runs")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"findings": [asdict(finding) for finding in self.findings]}


def evaluate_claims(table: Table) -> list[Verdict]:
    """Test the paper's claims about a table; columns that the paper does not have are left out.

    A table trained for a different number of epochs than in the paper has no verdicts.
    """
    if not table.comparable:
        return []
    columns = [column for column in table.columns if canonical(column) in SETS]
    others = [column for column in table.columns if canonical(column) in STAND_INS]
    verdicts = []
    for statement in claims(table.name):
        if statement.kind == "gain":
            findings = [_gain(table, statement, columns)] if columns else []
        else:
            # other data are adjusted separately, so that they do not weaken the tests on the paper's data sets
            findings = [*_findings(table, statement, columns), *_findings(table, statement, others)]
            present = {canonical(column) for column in columns}
            absent = [name for name in SETS if name not in present] if statement.everywhere and findings else []
            findings += [ColumnVerdict(column=n, verdict="not enough runs", numbers=ABSENT) for n in absent]
        overall = _overall(findings)
        how = HOW[statement.kind]
        verdicts.append(Verdict(words=statement.words, verdict=overall, how=how, findings=tuple(findings)))
    return verdicts


def _overall(findings: Sequence[ColumnVerdict]) -> Word:
    """The worst verdict of the columns; a claim about every data set cannot hold without FRANKENSTEIN."""
    hard = [finding for finding in findings if finding.numbers == ABSENT and finding.column not in EASY]
    word = _worst([finding.verdict for finding in findings if not finding.other and finding not in hard])
    return "not enough runs" if hard and word == "holds" else word


class Leader(NamedTuple):
    """The row with the best mean of a column, whether it is significantly ahead of all others, and a sentence."""

    row: str
    ahead: bool
    sentence: str


def leader(table: Table, column: str) -> Leader | None:
    """Compare the row with the best mean with every other row and the trivial baseline; None without training runs.

    It is ahead if the corrected paired t-test on the shared folds gives p < 0.05 against each of them, after Holm's
    adjustment.
    """
    cells = [c for c in (*table.cells, *table.baselines) if c.column == column and c.mean is not None]
    rows = [cell for cell in cells if cell.row in table.rows]
    if not rows or len(cells) < 2:
        return None
    score = headline_named(rows[0].score)
    sign = 1 if score.greater else -1
    best = max(rows, key=lambda cell: sign * (cell.mean or 0.0))  # the first in a tie
    others = [cell for cell in cells if cell is not best]
    p = [_p_better(best, cell, sign, table.folds) for cell in others]
    adjusted = holm(p)
    weakest = max(range(len(p)), key=lambda k: (adjusted[k], sign * (others[k].mean or 0.0)))
    name, value = others[weakest].row, p_value(adjusted[weakest])
    on = f"{column}: " if len(table.columns) > 1 else ""
    means = number(best.mean), number(others[weakest].mean)
    if max(adjusted) < SURE:
        whom = _named(others[weakest], table) if len(others) == 1 else "every other row"
        return Leader(best.row, True, f"{on}{best.row} is ahead of {whom} (p ≤ {value}, corrected paired t-test).")
    if sign * (best.mean or 0.0) < sign * (others[weakest].mean or 0.0) and means[0] != means[1]:  # a baseline is best
        text = f"{best.row} is not ahead of the {name}: {means[0]} against {means[1]}."
        if len(rows) > 1:
            text = f"No row is ahead of the {name} ({means[1]}): {best.row} has the {score.best} mean, {means[0]}."
    elif len(rows) == 1:
        text = f"{best.row} is not significantly ahead of the {name} (p = {value}, corrected paired t-test)."
    else:
        text = f"No row is significantly ahead of all others: {best.row} has the {score.best} mean, {means[0]}, "
        text += f"but its lead over {_named(others[weakest], table)} ({means[1]}) has p = {value} "
        text += "(corrected paired t-test, Holm's adjustment)."
    return Leader(best.row, False, f"{on}{text}")


def _named(cell: TableCell, table: Table) -> str:
    """The name of a row in a sentence."""
    return cell.row if cell.row in table.rows else f"the {cell.row}"


def worthless(table: Table, column: str) -> str | None:
    """A sentence that lists the rows that are not significantly better than the trivial baseline; None if empty."""
    trivial = next((cell for cell in table.baselines if cell.column == column), None)
    rows = [cell for cell in table.cells if cell.column == column and cell.values]
    if trivial is None or len(rows) < 2:  # for a single row, leader says so
        return None
    sign = 1 if headline_named(trivial.score).greater else -1
    adjusted = holm([_p_better(cell, trivial, sign, table.folds) for cell in rows])
    weak = [cell.row for cell, p in zip(rows, adjusted, strict=True) if p >= SURE]
    if not weak:
        return None
    on = f"{column}: " if len(table.columns) > 1 else ""
    return (
        f"{on}Not significantly better than the {trivial.row}: {', '.join(weak)} (corrected paired t-test, p ≥ {SURE})."
    )


def one_class_answers(records: Iterable[RunRecord]) -> list[str]:
    """A sentence for every method that predicts the same class for all test graphs of some folds."""
    alike, runs = Counter[str](), Counter[str]()
    for record in records:
        matrix = (record.test or {}).get("confusion")
        if matrix:
            runs[record.run.model.method] += 1
            alike[record.run.model.method] += sum(any(column) for column in zip(*matrix, strict=True)) == 1
    return [
        f"{name} predicts the same class for all test graphs in {alike[name]} of {count} training runs."
        for name, count in runs.items()
        if alike[name] and name != "majority"
    ]


def _p_better(one: TableCell, other: TableCell, sign: int, folds: int) -> float:
    """The p value of a cell being better than another on the folds that both have; 1 if its mean is worse."""
    values = {(seed, fold): value for seed, fold, value in one.values}
    pairs = [(values[seed, fold], value) for seed, fold, value in other.values if (seed, fold) in values]
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs], test_share=test_share(folds))
    if sign * test.difference <= 0:
        return 1.0
    if test.p_corrected_t is None:  # every fold differs by the same amount, or there are fewer than two
        return 0.0 if test.n > 1 else 1.0
    return test.p_corrected_t


def _findings(table: Table, statement: PaperClaim, columns: Sequence[str]) -> list[ColumnVerdict]:
    """The claim column by column, with Holm's adjustment over the comparisons of all of them."""
    compare: dict[str, Callable[[Table, PaperClaim, str], list[Compared | None]]] = {
        "above": _above, "steadier": _steadier, "rising": _rising
    }  # fmt: skip
    by_column = {column: compare[statement.kind](table, statement, column) for column in columns}
    adjusted = iter(holm([one.p for results in by_column.values() for one in results if one is not None]))
    verdicts = []
    for column, results in by_column.items():
        tested = [one._replace(p=next(adjusted)) for one in results if one is not None]
        words = [_word(one, statement.ties) for one in tested]
        words += ["not enough runs"] * (len(results) - len(tested))
        numbers, other = _together(tested) or MISSING[statement.kind], canonical(column) in STAND_INS
        verdicts.append(ColumnVerdict(column=column, verdict=_worst(words), numbers=numbers, other=other))
    return verdicts


def _word(one: Compared, ties: bool) -> Word:
    if one.p >= SURE:
        return "too close to call"
    return "holds" if one.effect > 0 or (ties and one.effect == 0) else "does not hold"


def _above(table: Table, statement: PaperClaim, column: str) -> list[Compared | None]:
    compared: list[Compared | None] = []
    for first, second in statement.pairs:
        both = _shared(table, [(first, column), (second, column)])
        if both is None:
            compared.append(None)
            continue
        gap, margin, p = higher(*both)
        compared.append(Compared(first, f"{signed(gap, margin)} over {second}", both.shape[1], gap, p))
    return compared


def _steadier(table: Table, statement: PaperClaim, column: str) -> list[Compared | None]:
    compared: list[Compared | None] = []
    for first, second in statement.pairs:
        both = _shared(table, [(first, column), (second, column)])
        if both is None or both.shape[1] < STEADY:
            compared.append(None)
            continue
        a, b = (float(np.std(row.mean(axis=1), ddof=1)) for row in both)
        rest = f"± {b:.2f} of {second}"
        compared.append(Compared(f"{first} ± {a:.2f} against", rest, both.shape[1], *steadier(*both)))
    return compared


def _rising(table: Table, statement: PaperClaim, column: str) -> list[Compared | None]:
    rows = [row for row in table.rows if table.cell(row, column) is not None]
    values = _shared(table, [(row, column) for row in rows]) if len(rows) > 2 else None
    if values is None:
        return [None]
    means = values.mean(axis=(1, 2))  # (rows,)
    rank, p = rising(values)
    first = f"{rows[-1]} {signed(float(means[-1] - means[0]))} over {rows[0]}, rank correlation"
    return [Compared(first, f"{rank:.2f}", values.shape[1], rank, p)]


def _gain(table: Table, statement: PaperClaim, columns: Sequence[str]) -> ColumnVerdict:
    """The mean over the data sets, seed by seed."""
    [(first, second)] = statement.pairs
    places = [[(row, column) for row in (first, second)] for column in columns]
    name = f"{sum(_shared(table, pair) is not None for pair in places)} of {len(SETS)} data sets"
    enough = set(EASY) <= {canonical(column) for column in columns}
    values = _shared(table, [place for pair in places for place in pair]) if enough else None
    if values is None or values.shape[1] < 2:
        missing = f"the claim is about a mean over data sets, and needs two seeds finished on {', '.join(EASY)}"
        return ColumnVerdict(column=name, verdict="not enough runs", numbers=missing)
    means = values.mean(axis=2)  # (cells, seeds), the two rows in turn
    a, b = means[0::2].mean(axis=0), means[1::2].mean(axis=0)  # (seeds,)
    gains = 100 * (a - b) / b
    low, high = (round(end, 6) for end in interval(gains))
    least, on = statement.least, ""
    if len(columns) < len(SETS):
        least = int(10 * paper_gain(first, second, columns)) / 10  # rounded down, as in the claim
        on = f"; the paper has {least:.1f} % on these"
    word: Word = "too close to call"
    if low >= least or high < least:
        word = "holds" if low >= least else "does not hold"
    numbers = f"{a.mean():.2f} against {b.mean():.2f}: {signed(gains.mean())} %, "
    numbers += f"between {signed(low)} and {signed(high)} on {len(gains)} seeds{on}"
    return ColumnVerdict(column=name, verdict=word, numbers=numbers)


def _shared(table: Table, places: Sequence[tuple[str, str]]) -> Values | None:
    """Accuracies on the seeds that all cells have finished, (cells, seeds, folds); None if there is no such seed.

    places: row and column of each cell.
    """
    cells = [table.cell(row, column) for row, column in places]
    whole = [{} if cell is None else cell.complete_seeds(table.folds) for cell in cells]
    seeds = [seed for seed in whole[0] if all(seed in other for other in whole)]
    return np.array([[one[seed] for seed in seeds] for one in whole]) if seeds else None


def _together(comparisons: Sequence[Compared]) -> str:
    """The text of several comparisons; those with the same first row and number of seeds are combined.

    >>> _together([Compared("a", "+1 over b", 3, 1, 0.04), Compared("a", "+2 over c", 3, 2, 0.5)])
    'a +1 over b (p 0.04), +2 over c (p 0.5) on 3 seeds'
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for one in comparisons:
        p = f"p {one.p:.2g}" if one.p >= 0.001 else "p < 0.001"
        groups.setdefault((one.first, one.seeds), []).append(f"{one.rest} ({p})")
    return "; ".join(
        f"{first} {', '.join(rest)} on {seeds} {'seed' if seeds == 1 else 'seeds'}"
        for (first, seeds), rest in groups.items()
    )


def _worst(words: Sequence[Word]) -> Word:
    return next((word for word in WORST if word in words), "not enough runs")
