"""`asapool methods`: the methods that can be trained, with a sentence and the paper of each."""

from __future__ import annotations

from asapool.cli import _options as o
from asapool.cli._output import show


def methods(json: o.Json = False) -> None:
    """List the methods that can be trained."""
    from asapool.models.methods import methods as all_methods

    listed = all_methods()
    show([m.to_dict() for m in listed], {m.name: f"{m.kind:<12}  {m.sentence} [{m.paper}]" for m in listed}, json)
