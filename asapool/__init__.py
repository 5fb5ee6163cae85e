"""asapool: Adaptive Structure Aware Pooling for graphs, correct, fast and explainable.

Names are looked up when first used, so that importing the package, or asking the command line for help, costs nothing.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

if "torch" not in sys.modules:  # torch reads these when it is loaded; your own settings win
    if "OMP_WAIT_POLICY" not in os.environ:
        # After each matrix product torch's threads spin for a while before they sleep, on the cores our loops want
        # next. This shortens the while.
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    # Large tensors in large pages, as numpy has its arrays: a fresh one is quicker to touch.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.2.0"


class _Operators:
    """Registers asapool's operators when torch is about to read a program of torch.export, which may use them."""

    READER = "torch._export.serde.serialize"

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        """Nothing is found here: the import goes on as usual."""
        if name == cls.READER:
            import_module("asapool.kernels.fused")


if _Operators.READER in sys.modules:
    import_module("asapool.kernels.fused")
elif not any(getattr(finder, "READER", None) == _Operators.READER for finder in sys.meta_path):
    sys.meta_path.insert(0, _Operators)

_PUBLIC = {
    "ASAPClassifier": "asapool.estimator",
    "ASAPRegressor": "asapool.estimator",
    "ASAPooling": "asapool.nn",
    "AsapoolError": "asapool.errors",
    "GraphSet": "asapool.data",
    "Hierarchy": "asapool.insight",
    "explain": "asapool.insight",
    "keep_memory": "asapool.kernels.threads",
    "load": "asapool.data",
    "load_model": "asapool.trained",
    "motifs": "asapool.insight",
    "register_method": "asapool.models.methods",
    "tune": "asapool.experiments.searching",
}
_PACKAGES = (
    "data", "estimator", "experiments", "exporting", "files", "insight", "kernels", "models", "nn", "reports", "serve",
    "theory", "training",
)  # fmt: skip
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _PACKAGES:  # asapool.insight.forecast after import asapool alone
        return import_module(f"asapool.{name}")
    raise AttributeError(f"module 'asapool' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
