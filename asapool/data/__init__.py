"""Reads files and objects into packed graphs: GraphSet, mini-batches, readers, splits.

>>> from asapool.data import load
>>> graphs = load("synthetic:motifs?graphs=4")
>>> len(graphs), graphs.batch([0, 2]).x.shape[0]
(4, 50)
"""

from asapool.data.batch import Batch
from asapool.data.graphset import GraphSet
from asapool.data.loading import load, read, stream
from asapool.data.reading import Reading, Skipped
from asapool.data.splits import Split
from asapool.data.summary import Summary
from asapool.data.targets import Target

__all__ = ["Batch", "GraphSet", "Reading", "Skipped", "Split", "Summary", "Target", "load", "read", "stream"]
