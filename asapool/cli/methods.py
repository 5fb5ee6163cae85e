"""`asapool methods`: the methods that can be trained, with a sentence and the paper of each."""

from __future__ import annotations

from asapool.cli import _options as o
from asapool.cli._output import show


def methods(json: o.Json = False) -> None:
    """List the methods that can be trained."""
    from dataclasses import asdict

    from asapool.models import methods as known

    listed = known()
    show([asdict(m) for m in listed], {m.name: f"{m.kind:<12}  {m.sentence} [{m.paper}]" for m in listed}, json)
