"""Sets of graphs larger than memory: a folder of memory-mapped arrays (.graphs), written by `asapool data convert`.

coding    compact, lossless storage of feature rows         arrays   mapped arrays that act like those of a GraphSet
parts     pieces of a set on disk during conversion         folder   the finished folder: checked and opened
convert   turns a source into a folder, in several processes; continues an interrupted conversion
"""
