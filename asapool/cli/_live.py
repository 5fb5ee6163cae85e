"""Progress on standard error, on a terminal only: bars over epochs, and the live table of an experiment.

If standard error is not a terminal, it prints one plain line per finished training run instead, and for a single run a
line every half minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapool.cli._output import note, watched

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.plan import Plan
    from asapool.experiments.record import RunRecord
    from asapool.experiments.run import Run
    from asapool.experiments.store import Store
    from asapool.training.state import Epoch, Progress


Place = tuple[int, str, str]  # plan, row, column
SECONDS_PER_LINE = 30.0  # between two lines of a single run, if there is no terminal


class Watch:
    """Follows an experiment; `with` draws it."""

    def __init__(self, plans: Sequence[Plan], graphs: Mapping[str, GraphSet]) -> None:
        from rich.console import Console

        from asapool.experiments.time_left import TimeLeft

        self.plans = plans
        self.places: dict[str, list[Place]] = {}  # key of a Run → the cells it belongs to
        self.values: dict[Place, list[float]] = {}
        self.words = "accuracy in percent"
        self.expected: dict[Place, int] = {}
        self.runs: dict[str, Run] = {}
        for number, plan in enumerate(plans):
            for cell in plan.cells:
                place = (number, cell.row, cell.column)
                runs = plan.runs_of(cell, graphs)
                self.expected[place] = len(runs)
                for run in runs:
                    self.places.setdefault(run.key, []).append(place)
                    self.runs[run.key] = run
        self.nodes = {g.fingerprint: len(g.x) for g in graphs.values()}
        self.clock = TimeLeft([], self.nodes)
        self.seen: Place | None = None  # the cell that changed last
        self.done = 0
        self.console = Console(stderr=True)
        self.live: Any = None

    def start(self, store: Store) -> None:
        """Count the training runs that are already finished in the store."""
        from asapool.experiments.time_left import TimeLeft

        waiting = []
        for key, run in self.runs.items():
            if store.finished(key):
                self._count(store.records()[key])
            else:
                waiting.append(run)
        self.clock = TimeLeft(waiting, self.nodes)
        if self.done:
            self._say(f"{self.done} of {len(self.runs)} training runs were already finished")
        elif self.live is None:  # a terminal shows the table at once
            note(f"{len(self.runs)} training runs to do")

    def progress(self, run: Run, epoch: int, epochs: int, score: float | None = None) -> None:
        """Update the number of epochs that a run has trained."""
        self.clock.progress(run, epoch, epochs)
        self.seen = self.places[run.key][0]

    def record(self, record: RunRecord) -> None:
        """Count a finished training run, or report a failed one at once."""
        self.clock.record(record)
        self.seen = self.places[record.run.key][0]
        run = record.run
        label = f"{self.plans[self.seen[0]].name}, {self.seen[1]}, {run.data}, seed {run.seed}, fold {run.fold}"
        if not record.finished:
            self._say(f"{label}: failed in attempt {record.attempts}: {record.failure}")
            return
        self._count(record)
        if self.live is None:
            from asapool.experiments.summary import headline_of
            from asapool.experiments.time_left import in_words

            score = headline_of(record.test)
            value = score.of(record.test)
            text = "–" if value is None else f"{score.factor * value:.2f}"
            left = "" if self.done == len(self.runs) else f"; left: {in_words(self.clock.seconds())}"
            note(f"{self.done}/{len(self.runs)}  {label}: test {text} in {record.seconds:.1f} s{left}")

    def _count(self, record: RunRecord) -> None:
        from asapool.experiments.summary import headline_of

        self.done += 1
        for place in self.places[record.run.key]:
            scores = record.test if self.plans[place[0]].metric == "test" else record.validation
            score = headline_of(scores)
            value = score.of(scores)
            if value is not None:
                self.words = score.words
                self.values.setdefault(place, []).append(score.factor * value)

    def _say(self, text: str) -> None:
        if self.live is None:
            note(text)
        else:
            self.live.console.print(text, markup=False, highlight=False)

    # drawing

    def __enter__(self) -> Watch:
        if self.console.is_terminal and self.plans:
            from rich.live import Live

            self.live = Live(console=self.console, get_renderable=self.draw, refresh_per_second=2, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def draw(self) -> Any:
        """The table as filled so far, and the progress bar below it."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from asapool.experiments.time_left import in_words

        number = self.seen[0] if self.seen is not None else 0
        plan = self.plans[number]
        title = f"{plan.title}: mean {plan.metric} {self.words}, and the number of finished training runs"
        grid = Table()
        grid.add_column("")
        for column in plan.columns:
            grid.add_column(Text(column), justify="right")
        for row in self._window(plan):
            grid.add_row(Text(row), *(self._cell((number, row, column)) for column in plan.columns))
        epochs = sum(list(self.clock.done.values()))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(1, len(self.runs)), completed=self.done, width=32),
            f"{self.done}/{len(self.runs)} training runs",
            f"{len(self.clock.done)} running, {epochs} epochs",
            f"left: {in_words(self.clock.seconds())}",
        )
        return Group(Text(title, overflow="ellipsis", no_wrap=True), grid, bar)

    def _window(self, plan: Plan) -> Sequence[str]:
        """The rows that fit on the terminal, including the one that changed last."""
        room = max(3, self.console.height - 8)
        if len(plan.rows) <= room:
            return plan.rows
        at = plan.rows.index(self.seen[1]) if self.seen is not None and self.seen[1] in plan.rows else 0
        first = min(max(0, at - room // 2), len(plan.rows) - room)
        return plan.rows[first : first + room]

    def _cell(self, place: Place) -> str:
        if place not in self.expected:
            return ""
        values = list(self.values.get(place, []))
        mean = f"{sum(values) / len(values):.2f}" if values else "–"
        return f"{mean}  {len(values)}/{self.expected[place]}"


class EpochBar:
    """A progress bar over the epochs of one run, with loss, validation score, rate and time left.

    If stderr is not a terminal, such as a log file, it prints a line now and then instead.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.folder, self.now = folder, now
        self.epochs, self.graphs = 0, 0  # known when the first epoch ends
        self.bar, self.task = _bar("training", 0)
        self.printed = now()

    def __call__(self, epoch: Epoch, progress: Progress) -> None:
        """Show a finished epoch."""
        if not self.epochs:
            from asapool.training.run import extent

            self.epochs, self.graphs = extent(self.folder)
        best = "" if progress.best_score is None else f" (best {progress.best_score:.3f})"
        score = "–" if epoch.val_score is None else f"{epoch.val_score:.3f}{best}"
        rate = self.graphs / max(epoch.seconds, 1e-9)
        text = f"loss {epoch.loss:.4f}  validation {score}  {rate:,.0f} graphs/s"
        self.bar.update(self.task, completed=epoch.epoch, total=self.epochs, text=text)
        if self.bar.disable and self.now() - self.printed >= SECONDS_PER_LINE and epoch.epoch < self.epochs:
            from asapool.experiments.time_left import in_words

            self.printed = self.now()
            left = in_words(epoch.seconds * (self.epochs - epoch.epoch))
            note(f"epoch {epoch.epoch} of {self.epochs}: {text}; left: {left}")

    def __enter__(self) -> EpochBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


@contextmanager
def part_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over the parts of a conversion."""
    bar, task = _bar(what, 0)
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(what: str, total: int) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
        TextColumn("{task.fields[text]}", markup=False), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=console, transient=True, disable=not watched(console))
    return bar, bar.add_task(what, total=total, text="")


@contextmanager
def ending(how: str) -> Iterator[None]:
    """If Ctrl-C stops the work, print how to resume it."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"\nStopped. To resume: {how}")
        raise
