"""What reading the graphs of a run left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from asapool.data import Skipped


@dataclass(kw_only=True)
class Reading:
    """Filled while graphs are read; a run keeps the two counts in its metrics.json."""

    skipped: list[Skipped] = field(default_factory=list)  # rows that could not be read
    missing: dict[str, int] = field(default_factory=dict)  # words in the class column taken for no class → how often
    unlabelled: int = 0  # graphs that were read and have no class

    def counts(self) -> dict[str, int]:
        """How many rows could not be read, and how many graphs have no class.

        >>> Reading(unlabelled=3).counts()
        {'skipped_rows': 0, 'without_class': 3}
        """
        return {"skipped_rows": len(self.skipped), "without_class": self.unlabelled}
