"""Estimators with scikit-learn's API: ASAPClassifier and ASAPRegressor."""

from asapool.estimator.estimators import ASAPClassifier, ASAPRegressor
from asapool.estimator.inputs import pack

__all__ = ["ASAPClassifier", "ASAPRegressor", "pack"]
