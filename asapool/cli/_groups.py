"""Groups of options for commands, and shorter help texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
import typer.core

from asapool.cli._output import be_quiet

QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]


class _QuietFlags:
    """Shorter help: flags without the type <bool>, arguments without braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_QuietFlags, typer.core.TyperCommand):
    """A command of asapool."""


class CommandGroup(_QuietFlags, typer.core.TyperGroup):
    """A group of commands of asapool."""


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a group of options (a dataclass) by the options of the group; add --quiet.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 2
    ...     height: int = 3
    >>> def area(size: Size, unit: str = "cm²") -> None:
    ...     print(size.width * size.height, unit)
    >>> grouped(area)(width=4, height=3, unit="m²")
    12 m²
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            groups[parameter.name] = kind
            types = get_type_hints(kind, include_extras=True)
            parameters += [_option(field.name, field.default, types[field.name]) for field in fields(kind)]
        else:
            parameters.append(_option(parameter.name, parameter.default, kind))

    parameters.append(_option("quiet", False, QUIET))

    @wraps(function)
    def command(*, quiet: bool = False, **values: Any) -> None:
        if quiet:
            be_quiet()
        for name, group in groups.items():
            values[name] = group(
                **{field.name: values.pop(field.name) for field in fields(group) if field.name in values}
            )
        function(**values)

    command.__doc__ = _one_line_per_paragraph(function)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _one_line_per_paragraph(function: Callable[..., None]) -> str:
    """The docstring with each paragraph joined into one line, because the help would keep its line breaks."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
