"""All numbers in the paper, and its claims in words that measured tables can confirm or refute.

Accuracies are in percent; ± is the deviation over 20 seeds × 10 folds. Data sets and rows have the same names as in the
plans, so that each of our cells finds its counterpart in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

HIERARCHICAL = ("diffpool", "topk", "sagpool")
EPOCHS = 100  # of every training run in the paper
GLOBAL = ("set2set", "global-attention", "sortpool")


class PaperNumber(NamedTuple):
    """A cell of a table; `other` is the data set it was measured on, if that is a different one."""

    mean: float
    deviation: float
    other: str = ""

    def __str__(self) -> str:
        text = f"{self.mean:.2f} ± {self.deviation:.2f}"
        return f"{self.other} {text} (other data)" if self.other else text


class Statistics(NamedTuple):
    """A line of the table of data sets; nodes and edges are means per graph."""

    graphs: int
    classes: int
    nodes: float
    edges: float


@dataclass(frozen=True, kw_only=True)
class PaperClaim:
    """A claim of the paper that a table can confirm, as a comparison of rows in every column.

    above: the first row of each pair has the higher mean. steadier: the first row has the smaller deviation over seeds.
    rising: accuracy increases with the rows, in their order. gain: the mean over the columns is higher by at least
    `least` percent of the other's; where FRANKENSTEIN is missing, by the percentage of the paper on the others.
    """

    words: str
    kind: Literal["above", "steadier", "rising", "gain"]
    pairs: tuple[tuple[str, str], ...] = ()
    ties: bool = False  # equal means count too
    least: float = 0.0
    everywhere: bool = False  # about all five data sets; otherwise about those in the table


SETS = ("DD", "PROTEINS", "NCI1", "NCI109", "FRANKENSTEIN")
# the molecules are FRANKENSTEIN's, the node features and the order are not, so the number is marked as other data
STAND_INS = {"Mutagenicity": "FRANKENSTEIN"}

# data set → (mean, deviation), row by row
COMPARISON = {
    "set2set": ((71.60, 0.87), (72.16, 0.43), (66.97, 0.74), (61.04, 2.69), (61.46, 0.47)),
    "global-attention": ((71.38, 0.78), (71.87, 0.60), (69.00, 0.49), (67.87, 0.40), (61.31, 0.41)),
    "sortpool": ((71.87, 0.96), (73.91, 0.72), (68.74, 1.07), (68.59, 0.67), (63.44, 0.65)),
    "diffpool": ((66.95, 2.41), (68.20, 2.02), (62.32, 1.90), (61.98, 1.98), (60.60, 1.62)),
    "topk": ((75.01, 0.86), (71.10, 0.90), (67.02, 2.25), (66.12, 1.60), (61.46, 0.84)),
    "sagpool": ((76.45, 0.97), (71.86, 0.97), (67.45, 1.11), (67.86, 1.41), (61.73, 0.76)),
    "asap": ((76.87, 0.70), (74.19, 0.79), (71.48, 0.42), (70.07, 0.55), (66.26, 0.47)),
}

# the ablations: FRANKENSTEIN, NCI1
# "Both", "M2T", "LEConv" and "Absent" are the same model, because the paper adds soft edges last
_BASE = ((67.8, 0.6), (70.7, 2.3))
_FULL = ((68.3, 0.5), (73.4, 0.4))
ABLATIONS = {
    "table-aggregation": {
        "none": ((67.4, 0.6), (69.9, 2.5)),
        "only cluster": ((67.5, 0.5), (70.6, 1.8)),
        "both": _BASE,
    },
    "table-attention": {"t2t": ((67.6, 0.5), (70.3, 2.0)), "s2t": ((67.7, 0.5), (69.9, 2.0)), "m2t": _BASE},
    "table-fitness": {"gcn": ((62.7, 0.3), (65.4, 2.5)), "basic-leconv": ((63.1, 0.7), (69.8, 1.9)), "leconv": _BASE},
    "table-edges": {"absent": _BASE, "present": _FULL},
    # the figure has no numbers; its point at the paper's k is the same model as the cell "Present"
    "figure-ratio": {"k = 0.5": _FULL},
}
ABLATED = ("FRANKENSTEIN", "NCI1")
SEMANTICS_ROWS = ("authors", "paper", "pyg", "paper with dynamic attention")

STATISTICS = {
    "DD": Statistics(1178, 2, 284.32, 715.66),
    "PROTEINS": Statistics(1113, 2, 39.06, 72.82),
    "NCI1": Statistics(4110, 2, 29.87, 32.30),
    "NCI109": Statistics(4127, 2, 29.68, 32.13),
    "FRANKENSTEIN": Statistics(4337, 2, 16.90, 17.88),
}

PROPERTIES = ("Sparse", "Node Aggregation", "Soft Edge Weights", "Variable number of clusters")
# method → the properties it has
TICKS = {
    "diffpool": ("Node Aggregation", "Soft Edge Weights"),
    "topk": ("Sparse", "Variable number of clusters"),
    "sagpool": ("Sparse", "Variable number of clusters"),
    "asap": PROPERTIES,
}

GRID: dict[str, tuple[float, ...]] = {
    "hidden": (16, 32, 64, 128),
    "lr": (0.01, 0.001),
    "attention_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "weight_decay": (5e-4,),
}
GLOBAL_GRID: dict[str, tuple[int | bool, ...]] = {"set2set_steps": (5, 10), "attention_transform": (True, False)}

_ALL_OTHERS = tuple(("asap", other) for other in (*GLOBAL, *HIERARCHICAL))
STATEMENTS = {
    "table2": (
        PaperClaim(
            words="ASAP has the highest accuracy on every data set", kind="above", pairs=_ALL_OTHERS, everywhere=True
        ),
        PaperClaim(
            words="ASAP varies less over seeds than the other hierarchical methods",
            kind="steadier",
            pairs=tuple(("asap", other) for other in HIERARCHICAL),
        ),
        PaperClaim(
            words="ASAP is on average 4 % better than SAGPool (3.9 % of its accuracy)",
            kind="gain", pairs=(("asap", "sagpool"),), least=3.9,
        ),
        PaperClaim(
            words="ASAP is on average 3.5 % better than SortPool (of its accuracy)",
            kind="gain", pairs=(("asap", "sortpool"),), least=3.5,
        ),
    ),
    "table-aggregation": (
        PaperClaim(words="Aggregating nodes helps: both above none", kind="above", pairs=(("both", "none"),)),
        PaperClaim(
            words="Both is the best way to aggregate", kind="above", pairs=(("both", "only cluster"), ("both", "none"))
        ),
    ),
    "table-attention": (
        PaperClaim(
            words="M2T is at least as good as T2T and S2T",
            kind="above", pairs=(("m2t", "t2t"), ("m2t", "s2t")), ties=True,
        ),
    ),
    "table-fitness": (
        PaperClaim(words="LEConv is better than Basic-LEConv", kind="above", pairs=(("leconv", "basic-leconv"),)),
        PaperClaim(words="Basic-LEConv is better than GCN", kind="above", pairs=(("basic-leconv", "gcn"),)),
    ),
    "table-edges": (
        PaperClaim(words="Soft edge weights help", kind="above", pairs=(("present", "absent"),)),
    ),
    "figure-ratio": (PaperClaim(words="Accuracy grows with the sampling ratio k", kind="rising"),),
}  # fmt: skip


def claims(plan: str) -> tuple[PaperClaim, ...]:
    """The paper's claims in words about a table.

    >>> [statement.words for statement in claims("table-edges")]
    ['Soft edge weights help']
    """
    return STATEMENTS.get(plan, ())


def paper_gain(first: str, second: str, data: Sequence[str]) -> float:
    """By how many percent the mean of a row of table2 over some data sets exceeds another's, as the paper has it.

    >>> round(paper_gain("asap", "sagpool", SETS), 2), round(paper_gain("asap", "sagpool", SETS[:4]), 2)
    (3.91, 3.17)
    """
    a, b = (sum(COMPARISON[row][SETS.index(canonical(name))][0] for name in data) for row in (first, second))
    return 100 * (a - b) / b


def claim(data: str, row: str, plan: str = "table2") -> PaperNumber | None:
    """The paper's number for a row of a table on a data set, if it has one.

    >>> claim("NCI1", "asap"), claim("MUTAG", "asap")
    (PaperNumber(mean=71.48, deviation=0.42, other=''), None)
    >>> str(claim("NCI1", "m2t", "table-attention"))
    '70.70 ± 2.30'
    """
    rows, sets = (COMPARISON, SETS) if plan == "table2" else (ABLATIONS.get(plan, {}), ABLATED)
    if plan == "table-semantics":  # all variants of the operator are compared with the same numbers
        rows, sets = dict.fromkeys(SEMANTICS_ROWS, COMPARISON["asap"]), SETS
    data = canonical(data)
    if data not in sets or row not in rows:
        return None
    return PaperNumber(*rows[row][sets.index(data)])


def nearest(data: str, row: str, plan: str = "table2") -> PaperNumber | None:
    """Like claim, or the number for the data set that this one replaces, marked as other data.

    >>> str(nearest("Mutagenicity", "asap"))
    'FRANKENSTEIN 66.26 ± 0.47 (other data)'
    """
    other = STAND_INS.get(canonical(data))
    if other is None:
        return claim(data, row, plan)
    number = claim(other, row, plan)
    return None if number is None else number._replace(other=other)


def canonical(data: str) -> str:
    """The name that our tables use for a data set of the paper.

    >>> canonical("D&D"), canonical("proteins"), canonical("my molecules")
    ('DD', 'PROTEINS', 'my molecules')
    """
    known = {name.lower(): name for name in (*SETS, *STAND_INS)} | {"d&d": "DD"}
    return known.get(data.lower(), data)


def cells(plan: str) -> Iterator[tuple[str, str, PaperNumber]]:
    """All cells of one of the paper's tables: row, column, number."""
    for column in SETS:
        for row in COMPARISON if plan == "table2" else ABLATIONS.get(plan, {}):
            number = claim(column, row, plan)
            if number is not None:
                yield row, column, number
