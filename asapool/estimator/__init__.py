"""Estimators that keep scikit-learn's contract: ASAPClassifier and ASAPRegressor."""

from asapool.estimator.estimators import ASAPClassifier, ASAPRegressor
from asapool.estimator.inputs import pack

__all__ = ["ASAPClassifier", "ASAPRegressor", "pack"]
