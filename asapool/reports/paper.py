"""What the paper's table of comparisons says (its Table 1): test accuracy in percent, ± over 20 seeds of 10 folds."""

from __future__ import annotations

from typing import NamedTuple


class Claim(NamedTuple):
    """A cell of the table."""

    mean: float
    deviation: float


SETS = ("DD", "PROTEINS", "NCI1", "NCI109", "FRANKENSTEIN")
CLAIMS = {
    "set2set": ((71.60, 0.87), (72.16, 0.43), (66.97, 0.74), (61.04, 2.69), (61.46, 0.47)),
    "global-attention": ((71.38, 0.78), (71.87, 0.60), (69.00, 0.49), (67.87, 0.40), (61.31, 0.41)),
    "sortpool": ((71.87, 0.96), (73.91, 0.72), (68.74, 1.07), (68.59, 0.67), (63.44, 0.65)),
    "diffpool": ((66.95, 2.41), (68.20, 2.02), (62.32, 1.90), (61.98, 1.98), (60.60, 1.62)),
    "topk": ((75.01, 0.86), (71.10, 0.90), (67.02, 2.25), (66.12, 1.60), (61.46, 0.84)),
    "sagpool": ((76.45, 0.97), (71.86, 0.97), (67.45, 1.11), (67.86, 1.41), (61.73, 0.76)),
    "asap": ((76.87, 0.70), (74.19, 0.79), (71.48, 0.42), (70.07, 0.55), (66.26, 0.47)),
}


def claim(data: str, method: str) -> Claim | None:
    """The paper's number for a method on a data set, where it has one.

    >>> claim("NCI1", "asap"), claim("MUTAG", "asap")
    (Claim(mean=71.48, deviation=0.42), None)
    """
    if data not in SETS or method not in CLAIMS:
        return None
    return Claim(*CLAIMS[method][SETS.index(data)])
