"""asapool: Adaptive Structure Aware Pooling for graphs, correct, fast and explainable.

Names are looked up when first used, so that importing the package, or asking the command line for help, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "ASAPClassifier": "asapool.estimator",
    "ASAPooling": "asapool.nn",
    "AsapoolError": "asapool.errors",
    "GraphSet": "asapool.data",
    "Hierarchy": "asapool.insight",
    "explain": "asapool.insight",
    "load": "asapool.data",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'asapool' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
