"""Drawings of graphs and hierarchies: layout, graph, overlays, and complete pictures."""
