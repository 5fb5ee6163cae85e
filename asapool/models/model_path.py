"""Where the file of a trained model is."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from asapool.errors import CheckpointError

FILE = "model.safetensors"  # in a run folder


def find(path: str | PathLike[str]) -> Path:
    """The model file at a path: the file itself, or the model.safetensors of a run folder.

    Args:
        path: a model file, or the folder of a finished `asapool train`.

    Returns:
        The path of an existing file; anything else is a CheckpointError.
    """
    path = Path(path)
    try:
        if path.is_dir():
            if not (path / FILE).is_file():
                raise CheckpointError(f"{path}: the folder contains no {FILE}. {_next_step(path)}")
            return path / FILE
        if not path.is_file():
            raise CheckpointError(f"{path}: there is no such file. Give the path of a run folder or a {FILE}")
    except CheckpointError:
        raise
    except (OSError, ValueError) as error:  # a name that is too long, or contains a NUL
        raise CheckpointError(f"{str(path)[:60]!r}: not a valid path ({error})") from None
    return path


def _next_step(folder: Path) -> str:
    """What to do with a folder that contains no model."""
    if (folder / "config.toml").exists():
        return f"Finish its training with: asapool train --resume {folder}"
    kept = sorted(folder.glob("models/*.safetensors"))
    if kept:
        return f"Give one of those in its subfolder models, such as {kept[0]}"
    if (folder / "runs.jsonl").exists():
        return (
            "It has the results of a cross-validation, and asapool cv keeps the models only with --keep-models. Repeat "
            "it with that option, or train a final model with asapool train"
        )
    return "Give a run folder"
