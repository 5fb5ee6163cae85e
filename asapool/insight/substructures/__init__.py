"""Substructures that decide: clusters of a whole data set cut out, named, counted, and removed to see what changes."""
