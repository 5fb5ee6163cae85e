"""What a person sees on standard error while a training runs; nothing unless it is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asapool.cli._output import note, watched

if TYPE_CHECKING:
    from asapool.training.state import Epoch, Progress


class EpochBar:
    """A bar over the epochs of one training, with loss, validation score, rate and time left."""

    def __init__(self, epochs: int, graphs: int) -> None:
        self.epochs, self.graphs, self.last = epochs, graphs, 0
        self.bar, self.task = _bar("training", epochs)

    def __call__(self, epoch: Epoch, progress: Progress) -> None:
        """Show a finished epoch."""
        self.last = epoch.epoch
        best = "" if progress.best_score is None else f" (best {progress.best_score:.3f})"
        score = "–" if epoch.val_score is None else f"{epoch.val_score:.3f}{best}"
        rate = self.graphs / max(epoch.seconds, 1e-9)
        self.bar.update(
            self.task, completed=epoch.epoch, total=self.epochs,
            text=f"loss {epoch.loss:.4f}  validation {score}  {rate:,.0f} graphs/s",
        )  # fmt: skip

    def __enter__(self) -> EpochBar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


@contextmanager
def part_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over the pieces of a conversion."""
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
def ending(go_on: str) -> Iterator[None]:
    """Print the next step when Ctrl-C stops work that can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"\nStopped. Resume with: {go_on}")
        raise
