"""Every error that asapool raises on purpose, in one tree.

    AsapoolError
    ├── InputError       (ValueError)   a tensor handed to a layer has a wrong shape, dtype or value
    │   └── GraphTooLargeError          pooling a graph would need more memory than allowed
    ├── ConfigError      (ValueError)   a setting is unknown or out of range
    ├── DataError        (ValueError)   a file or graph cannot be read as what it claims to be
    │   └── RefusedGraphsError          a model cannot predict some graphs of a set; lists them
    ├── CheckpointError  (ValueError)   a saved model or run does not fit what it is used for
    ├── TrainingError    (RuntimeError) training cannot continue                   exit code 1
    ├── WriteError       (OSError)      a file or folder cannot be written         exit code 1
    └── MissingExtraError (ImportError) an optional library is not installed

The command line exits with the error's exit_code: 2, unless the tree says 1. A message says where,
what was expected and what was found, and then what to do next.
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
    """A model cannot predict some graphs of a set.

    Args:
        message: describes the first of them.
        refused: index of a graph in the set → what is wrong with it.
    """

    def __init__(self, message: str, refused: dict[int, str]) -> None:
        super().__init__(message)
        self.refused = refused

    def __reduce__(self) -> tuple[type[RefusedGraphsError], tuple[str, dict[int, str]]]:
        return type(self), (str(self), self.refused)


class CheckpointError(AsapoolError, ValueError):
    """A saved model or run does not fit what it is used for."""


class TrainingError(AsapoolError, RuntimeError):
    """Training cannot continue."""

    exit_code = 1


class WriteError(AsapoolError, OSError):
    """A file or folder cannot be written."""

    exit_code = 1


class MissingExtraError(AsapoolError, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f'{library} is not installed. Run: pip install "asapool[{extra}]"')


def choose(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return value if it is one of the allowed strings; otherwise raise a ConfigError that lists them.

    >>> choose("attention", "m2t", ("m2t", "t2t", "s2t"))
    'm2t'
    """
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def plural(count: int, noun: str) -> str:
    """A number with its noun, for messages.

    >>> plural(1, "graph"), plural(1200, "graph")
    ('1 graph', '1,200 graphs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
