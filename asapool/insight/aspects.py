"""Aspect: the quantity of a prediction that a check of importance follows while nodes are removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from asapool.data.targets import Target
from asapool.insight.copies import effects
from asapool.insight.importance import KINDS
from asapool.insight.levels import Floats, Ints


class Aspect(NamedTuple):
    """The quantity that removals change: the probability of a class, or of a yes or no, or a measured value.

    Args:
        target: of the model.
        output: the class or task of each graph, (G,).
        answer: its predicted class, or 1 for yes and 0 for no; all 0 for measured values, (G,).
    """

    target: Target
    output: Ints
    answer: Ints

    @classmethod
    def of(cls, logits: Floats, target: Target, output: int | None = None) -> Aspect:
        """The aspect of the predictions for whole graphs.

        Args:
            logits: outputs of the model, (G, C).
            target: of the model.
            output: the class or task; None = the predicted class, or the first task.
        """
        G = len(logits)
        if target.kind == "classification":
            answer = logits.argmax(axis=1)
            return cls(target, answer if output is None else np.full(G, output), answer)
        k = output or 0
        yes = logits[:, k] > 0 if target.kind == "multilabel" else np.zeros(G)
        return cls(target, np.full(G, k), yes.astype(np.int64))

    @property
    def is_value(self) -> bool:
        """Whether the quantity is a measured value."""
        return self.target.kind == "regression"

    def measure(self, logits: Floats, graph: Ints) -> tuple[Floats, Any]:
        """The quantity, and whether the class is still the predicted one, for changed graphs.

        Args:
            logits: (R, C).
            graph: the graph that each was made from, (R,).
        """
        rows, k = np.arange(len(logits)), self.output[graph]
        if self.is_value:
            return effects(logits, self.target)[rows, k], np.ones(len(logits), bool)
        if self.target.kind == "multilabel":
            z = logits[rows, k]
            logits, k = np.stack([np.zeros_like(z), z], axis=1), self.answer[graph]
        return _softmax(logits)[rows, k], logits.argmax(axis=1) == self.answer[graph]

    def ranking(self, kind: str, scores: Sequence[Floats]) -> list[Floats]:
        """Importance for the quantity, one array per graph: the most important nodes have the largest numbers.

        A node matters for a value whether it raises or lowers it. Importance refers to yes, so that a node matters for
        no if it opposes yes.
        """
        if self.is_value:
            return [np.abs(values) for values in scores]
        if self.target.kind == "multilabel" and kind in KINDS and KINDS[kind].signed:
            return [values if yes else -values for values, yes in zip(scores, self.answer, strict=True)]
        return list(scores)


def _softmax(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p: Floats = e / e.sum(axis=1, keepdims=True)
    return p
