"""What is decided when a run begins, and then written to its settings: threads, the rule for the epoch, the backend."""

from __future__ import annotations

from dataclasses import replace

from asapool.data import GraphSet, Split
from asapool.models.methods import method
from asapool.training.selection import resolve_rule
from asapool.training.settings import RunSettings
from asapool.training.tasks import check_target, task_of

# nodes and edges times epochs: a training of this size takes some ten seconds with the reference backend, and compiling
# the loops of the fused one takes longer
SMALL_JOB = 750_000


def settle(settings: RunSettings, graphs: GraphSet, split: Split, threads: int, trainings: int = 1) -> RunSettings:
    """The settings with all that is decided when a run begins.

    The number of threads decides how sums are cut, so it is a setting like any other; so is the rule for the epoch, and
    the backend, which model.backend = "auto" leaves open.

    Args:
        settings: as given.
        graphs: the data set.
        split: its parts.
        threads: of torch, where the settings name none.
        trainings: how many times the model is trained.
    """
    rule = resolve_rule(
        settings.train.select_by, task_of(graphs.target), graphs.y[split.train], settings.train.weighted
    )
    train = replace(settings.train, threads=settings.train.threads or threads, select_by=rule)
    check_target(graphs, split.train, train)
    model = settings.model
    if is_small(settings, len(graphs.x) + len(graphs.col), trainings):
        model = replace(model, backend="reference")
    return replace(settings, model=model, train=train)


def is_small(settings: RunSettings, size: int, trainings: int = 1) -> bool:
    """Whether a training is too small to compile loops for.

    Settings and sizes alone decide, never the state of a machine: the same command gives the same bytes everywhere. The
    model keeps the backend, so its answers do not depend on how many graphs it is asked about.

    Args:
        settings: of the training.
        size: nodes and edges of all graphs together.
        trainings: how many times the model is trained.

    >>> settings = RunSettings.from_dict({"train": {"epochs": 100}})
    >>> is_small(settings, 4_560), is_small(settings, 162_000)
    (True, False)
    """
    chosen = method(settings.model.method)
    return (
        settings.model.backend == "auto"
        and settings.model.max_neighbours is None  # bounds the memory of huge graphs, which only the loops can
        and settings.train.device == "cpu"
        and chosen.builtin
        and chosen.trainer == "gradient"
        and size * settings.train.epochs * trainings <= SMALL_JOB
    )
