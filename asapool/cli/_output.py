"""Answers go to standard output as text or JSON; progress goes to standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

import typer


def show(value: Any, rows: Mapping[str, Any], as_json: bool) -> None:
    """Print the object itself as JSON, or its rows as aligned lines of text.

    >>> show({"graphs": 2}, {"graphs": 2, "mean nodes": 3.5}, as_json=False)
    graphs      2
    mean nodes  3.50
    """
    if as_json:
        typer.echo(json.dumps(plain(value), indent=2))
        return
    width = max(map(len, rows), default=0)
    for name, cell in rows.items():
        typer.echo(f"{name:<{width}}  {words(cell)}")


def plain(value: Any) -> Any:
    """A dataclass as JSON data; other values as they are."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def words(cell: Any) -> str:
    """A number with two decimals, yes or no, or the text itself."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on standard error that something is being done, when a person is looking."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def note(text: str) -> None:
    """One line on standard error."""
    typer.echo(text, err=True)
