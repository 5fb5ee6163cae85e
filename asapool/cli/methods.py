"""`asapool methods` and `asapool warmup`: list the methods that can be trained, and compile their kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import show, working
from asapool.cli._values import words_of


def methods(json: o.Json = False) -> None:
    """List the methods that can be trained."""
    from asapool.models.methods import methods as all_methods

    listed = all_methods()
    show([m.to_dict() for m in listed], {m.name: f"{m.kind:<12}  {m.sentence} [{m.paper}]" for m in listed}, json)


def warmup(
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES", rich_help_panel=o.MODEL, help="Methods to compile for, separated by commas; or all."
        ),
    ] = "asap+,asap",
    json: o.Json = False,
) -> None:
    """Compile the CPU kernels now instead of during the first training.

    They are cached in $NUMBA_CACHE_DIR, or beside the installed package. Run it when you build a container image, or
    once per machine.
    """
    from asapool.kernels.fused.compiled import cache_folder
    from asapool.models.methods import method, method_names
    from asapool.training.warmup import warm_up

    names = method_names(trainer="gradient", builtin=True) if methods == "all" else words_of(methods, "--methods")
    for name in names:
        method(name, "--methods")
    with working("Compiling"):
        seconds = warm_up(names)
    answer = {"methods": ", ".join(names), "seconds": round(seconds, 1), "cache": cache_folder()}
    show(answer, answer, json)
