"""Sets of graphs larger than memory: a folder of memory-mapped arrays (.graphs), written by `asapool data convert`.

coding    rows of numbers in as few bits as they need      arrays   mapped arrays that act like those of a GraphSet
parts     pieces of a set on disk, while it is converted   folder   the finished folder: written, checked, opened
convert   a source becomes a folder, in several processes, and goes on where it was stopped
"""
