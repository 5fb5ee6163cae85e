"""Drawings of graphs and hierarchies: the layout, the graph itself, what is drawn over it, whole pictures."""
