"""The paper's theory as code: receptive fields, connectivity bounds, exhaustive checks.

Public names are imported on first use, because the closed forms do not need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "ReceptiveField": "receptive",
    "balanced_starlike_tree": "graphs",
    "edge_reach": "bounds",
    "forced": "bounds",
    "k_star": "bounds",
    "k_star_limit": "bounds",
    "optimum_nodes": "bounds",
    "path_graph": "graphs",
    "path_optimum": "bounds",
    "receptive_field": "receptive",
    "scatter": "bounds",
    "starlike_optimum": "bounds",
    "tree_optimum": "bounds",
    "verify": "report",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"asapool.theory.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'asapool.theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
