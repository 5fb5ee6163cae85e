"""asapool: Adaptive Structure Aware Pooling for graphs, correct, fast and explainable.

Public names are imported on first use, so that `import asapool` and `asapool --help` are fast.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

if "torch" not in sys.modules:  # torch reads these when it is imported; values already set are kept
    if "OMP_WAIT_POLICY" not in os.environ:
        # After each matrix product torch's threads spin before they sleep, on the cores that the compiled loops need
        # next. A lower count makes them sleep sooner.
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    # Put large tensors into huge pages, as numpy does with its arrays: the first write to a new one is faster.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.2.0"


class _Operators:
    """Import hook: registers asapool's operators before torch loads an exported program, which may use them."""

    READER = "torch._export.serde.serialize"

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        """Find nothing, so that the import continues as usual."""
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
    if name in _PACKAGES:  # so that `import asapool` alone gives asapool.insight.forecast
        return import_module(f"asapool.{name}")
    raise AttributeError(f"module 'asapool' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
