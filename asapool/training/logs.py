"""Loggers of training curves besides history.csv: TensorBoard, MLflow, Weights & Biases.

Each is an optional dependency, imported on first use. Logs get the values of history.csv, and do not affect training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from asapool.errors import MissingExtraError, choose
from asapool.files import working_in
from asapool.training.settings import RunSettings
from asapool.training.state import Epoch, Progress

Send = Callable[[int, Mapping[str, float]], None]  # the number of an epoch (0 = the end), and values by name


class LogEntry(NamedTuple):
    """One entry of the table.

    Args:
        sentence: describes it.
        open: (folder, settings) → send and close.
    """

    sentence: str
    open: Callable[[Path, RunSettings], tuple[Send, Callable[[], None]]]


def _tensorboard(folder: Path, settings: RunSettings) -> tuple[Send, Callable[[], None]]:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tensorboard", "tensorboard") from None
    writer: Any = SummaryWriter(str(folder / "tensorboard"))
    writer.add_text("settings", f"```toml\n{settings.to_toml()}\n```")

    def send(epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, epoch)

    return send, writer.close


def _mlflow(folder: Path, settings: RunSettings) -> tuple[Send, Callable[[], None]]:
    try:
        import mlflow
    except ImportError:
        raise MissingExtraError("mlflow", "mlflow") from None
    mlflow.start_run(run_name=folder.name)
    mlflow.log_params(_flat(settings))

    def send(epoch: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics({name.replace("/", "_"): value for name, value in values.items()}, step=epoch)

    return send, mlflow.end_run


def _wandb(folder: Path, settings: RunSettings) -> tuple[Send, Callable[[], None]]:
    try:
        import wandb
    except ImportError:
        raise MissingExtraError("wandb", "wandb") from None
    run = wandb.init(project="asapool", name=folder.name, dir=str(folder), config=_flat(settings))

    def send(epoch: int, values: Mapping[str, float]) -> None:
        run.log({"epoch": epoch, **values} if epoch else dict(values))

    return send, run.finish


LOGS: dict[str, LogEntry] = {
    "tensorboard": LogEntry("event files in FOLDER/tensorboard", _tensorboard),
    "mlflow": LogEntry("a run of MLflow at MLFLOW_TRACKING_URI", _mlflow),
    "wandb": LogEntry("a run of Weights & Biases in the project asapool", _wandb),
}


@contextmanager
def logging_to(
    names: list[str], folder: str | PathLike[str], settings: RunSettings
) -> Iterator[tuple[Callable[[Epoch, Progress], None], Callable[[Mapping[str, Any]], None]]]:
    """Open the named logs; yields a hook for `on_epoch`, and one for the metrics at the end.

    Args:
        names: of LOGS.
        folder: of the run.
        settings: of the run, logged with the curves.
    """
    for name in names:
        choose("--log", name, tuple(LOGS))
    if names:
        with working_in(folder):  # makes the folder, or reports why it cannot
            pass
    opened: list[tuple[Send, Callable[[], None]]] = []

    def on_epoch(epoch: Epoch, progress: Progress) -> None:
        values = {"loss/train": epoch.loss, "lr": epoch.lr}
        more = {"loss/validation": epoch.val_loss, "score/validation": epoch.val_score}
        for send, _ in opened:
            send(epoch.epoch, values | {name: value for name, value in more.items() if value is not None})

    def at_end(metrics: Mapping[str, Any]) -> None:
        test = metrics.get("test") or {}
        scores = {f"test/{name}": float(v) for name, v in test.items() if isinstance(v, (int, float))}
        for send, _ in opened:
            send(0, scores)

    try:
        opened.extend(LOGS[name].open(Path(folder), settings) for name in names)
        yield on_epoch, at_end
    finally:
        for _, close in opened:
            close()


def _flat(settings: RunSettings) -> dict[str, str]:
    return {f"{table}.{name}": str(v) for table, values in settings.to_dict().items() for name, v in values.items()}
