"""Estimators that keep scikit-learn's contract: ASAPClassifier and ASAPRegressor."""

from asapool.estimator.classifier import ASAPClassifier
from asapool.estimator.inputs import pack
from asapool.estimator.regressor import ASAPRegressor

__all__ = ["ASAPClassifier", "ASAPRegressor", "pack"]
