"""Explanations: clusters and node importance for one graph, substructures and pooling forecasts for a data set.

Names are imported on first use; the forecast needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapool.insight.contrasting import Contrast, contrast
    from asapool.insight.explaining import explain
    from asapool.insight.faithfulness import Faithfulness, check_importance
    from asapool.insight.forecasting import Forecast, forecast
    from asapool.insight.hierarchy import Hierarchy
    from asapool.insight.levels import Level
    from asapool.insight.spans import receptive_spans
    from asapool.insight.substructures.finding import motifs
    from asapool.insight.substructures.results import Motifs

_HOME = {
    "Forecast": "forecasting",
    "Hierarchy": "hierarchy",
    "Level": "levels",
    "explain": "explaining",
    "forecast": "forecasting",
    "Contrast": "contrasting",
    "Faithfulness": "faithfulness",
    "Motifs": "substructures.results",
    "check_importance": "faithfulness",
    "contrast": "contrasting",
    "motifs": "substructures.finding",
    "receptive_spans": "spans",
}
__all__ = [
    "Contrast", "Faithfulness", "Forecast", "Hierarchy", "Level", "Motifs", "check_importance", "contrast", "explain",
    "forecast", "motifs", "receptive_spans",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"asapool.insight.{_HOME[name]}"), name)
    raise AttributeError(f"module 'asapool.insight' has no attribute {name!r}")
