"""Every error that asapool raises on purpose, in one tree.

    AsapoolError
    ├── InputError       (ValueError)   a tensor handed to a layer has a wrong shape, dtype or value
    │   └── GraphTooLargeError          pooling a graph would need more memory than allowed
    ├── ConfigError      (ValueError)   a setting is unknown or out of range
    ├── DataError        (ValueError)   a file or graph cannot be read as what it claims to be
    │   └── RefusedGraphsError          a model cannot answer to some graphs of a set, and names them
    ├── CheckpointError  (ValueError)   a saved model or run does not fit what it is used for
    ├── TrainingError    (RuntimeError) training cannot go on                      exit code 1
    ├── WriteError       (OSError)      a file or folder cannot be written         exit code 1
    └── MissingExtraError (ImportError) an optional library is not installed

The command line ends with the error's exit_code: 2, except where the tree says 1. A message is one
sentence of where, what was expected and what came, and one of what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class AsapoolError(Exception):
    """The root of asapool's own errors."""

    exit_code: ClassVar[int] = 2


class InputError(AsapoolError, ValueError):
    """A tensor handed to a layer has a wrong shape, dtype or value."""


class GraphTooLargeError(InputError):
    """Pooling one graph of a batch would need more memory than allowed.

    Args:
        graph: its position in the batch.
        reason: what is wrong with it.
    """

    def __init__(self, graph: int, reason: str) -> None:
        super().__init__(f"graph {graph} of the batch {reason}")
        self.graph, self.reason = graph, reason

    def __reduce__(self) -> tuple[type[GraphTooLargeError], tuple[int, str]]:
        return type(self), (self.graph, self.reason)


class ConfigError(AsapoolError, ValueError):
    """A setting is unknown or out of range."""


class DataError(AsapoolError, ValueError):
    """A file or graph cannot be read as what it claims to be."""


class RefusedGraphsError(DataError):
    """A model cannot answer to some graphs of a set.

    Args:
        message: about the first of them.
        refused: number of a graph in the set → what is wrong with it.
    """

    def __init__(self, message: str, refused: dict[int, str]) -> None:
        super().__init__(message)
        self.refused = refused

    def __reduce__(self) -> tuple[type[RefusedGraphsError], tuple[str, dict[int, str]]]:
        return type(self), (str(self), self.refused)


class CheckpointError(AsapoolError, ValueError):
    """A saved model or run does not fit what it is used for."""


class TrainingError(AsapoolError, RuntimeError):
    """Training cannot go on."""

    exit_code = 1


class WriteError(AsapoolError, OSError):
    """A file or folder cannot be written."""

    exit_code = 1


class MissingExtraError(AsapoolError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f'{library} is not installed. Run: pip install "asapool[{extra}]"')


def choose(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return value when it is one of the allowed words, or say which words are.

    >>> choose("attention", "m2t", ("m2t", "t2t", "s2t"))
    'm2t'
    """
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value
