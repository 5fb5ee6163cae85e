"""What was pooled, and why: the hierarchy of one graph, and what each of its nodes did to the answer."""

from asapool.insight.explaining import explain
from asapool.insight.hierarchy import Hierarchy
from asapool.insight.level import Level

__all__ = ["Hierarchy", "Level", "explain"]
