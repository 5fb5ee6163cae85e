"""Classifiers: from a config to a module, and from a module to one file and back."""

from asapool.models import checkpoint
from asapool.models.catalog import MethodInfo, methods
from asapool.models.classifier import GraphClassifier, build
from asapool.models.config import METHODS, ModelConfig

__all__ = ["METHODS", "GraphClassifier", "MethodInfo", "ModelConfig", "build", "checkpoint", "methods"]
