"""Models: the registry of methods, building a module from a config, and saving it to one file.

Public names are imported on first use, so that listing the methods does not load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapool.models.classifier import GraphClassifier, GraphModel, build
    from asapool.models.config import LevelShape, ModelConfig, ModelShape
    from asapool.models.direct import DirectModel
    from asapool.models.methods import Method, method, method_names, register, register_method

_HOME = {
    "DirectModel": "direct",
    "GraphClassifier": "classifier",
    "GraphModel": "classifier",
    "LevelShape": "config",
    "Method": "methods",
    "ModelConfig": "config",
    "ModelShape": "config",
    "build": "classifier",
    "method": "methods",
    "method_names": "methods",
    "register": "methods",
    "register_method": "methods",
}
__all__ = [
    "DirectModel",
    "GraphClassifier",
    "GraphModel",
    "LevelShape",
    "Method",
    "ModelConfig",
    "ModelShape",
    "build",
    "method",
    "method_names",
    "register",
    "register_method",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"asapool.models.{_HOME[name]}"), name)
    raise AttributeError(f"module 'asapool.models' has no attribute {name!r}")
