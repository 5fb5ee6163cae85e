"""Substructures that drive predictions: clusters of a whole data set are cut out, named, counted and removed."""
