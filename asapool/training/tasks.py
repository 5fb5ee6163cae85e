"""TASKS: everything that depends on the kind of target, in one table used by training, scores and files.

kind             outputs      predictions                 loss                          trivial baseline
classification   (G, C)       softmax                     cross entropy                 class shares
regression       (G, T)       outputs · scale + mean      squared error or Huber        mean
multilabel       (G, T)       sigmoid                     binary cross entropy          share of yes

To add a kind of target: a subclass of Task, an entry of TASKS, and its name in asapool.data.targets.KINDS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asapool.data.targets import Target
from asapool.training.task import Ints, Task
from asapool.training.task_classes import Classification
from asapool.training.task_columns import Multilabel, Regression

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig

TASKS: dict[str, Task] = {task.kind: task for task in (Classification(), Regression(), Multilabel())}


def task_of(target: Target | None) -> Task:
    """The entry of a target; None = classification, the only kind of 0.1.0."""
    return TASKS["classification" if target is None else target.kind]


def check_target(graphs: GraphSet, train: Ints, config: TrainConfig) -> None:
    """Refuse values that cannot be scaled, and weights of unknown classes or tasks, before anything is written."""
    task = task_of(graphs.target)
    task.loss(graphs, train, task.scaled(graphs.target, graphs.y[train], graphs.name), config, None)
