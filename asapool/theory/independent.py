"""Largest independent sets by branch and bound, for the graphs on which no shortcut exists."""

from __future__ import annotations


def largest_independent(conflict: list[int]) -> list[int]:
    """A largest set of nodes of which no two are in conflict; bit j of conflict[i] says that i and j are.

    max |S| subject to conflict[i] ∩ S ⊆ {i} for every i ∈ S

    >>> largest_independent([0b0010, 0b0101, 0b1010, 0b0100])        # the path 0 − 1 − 2 − 3
    [0, 2]
    """
    foes = [mask & ~(1 << i) for i, mask in enumerate(conflict)]
    best = _solve((1 << len(foes)) - 1, foes, -1)
    return [i for i in range(len(foes)) if best >> i & 1]


def _solve(open_nodes: int, foes: list[int], floor: int) -> int:
    """A largest independent subset of the open nodes, or any subset of at most `floor` nodes when none is larger."""
    taken, open_nodes = _take_the_obvious(open_nodes, foes)
    if not open_nodes:
        return taken
    part = _component(open_nodes, foes)
    if part != open_nodes:  # pieces without conflicts between them are solved one by one
        while open_nodes:
            part = _component(open_nodes, foes)
            taken |= _solve(part, foes, -1)
            open_nodes &= ~part
        return taken
    room = floor - taken.bit_count()
    if _cliques(open_nodes, foes) <= room:
        return taken
    pivot = max(_bits(open_nodes), key=lambda i: (foes[i] & open_nodes).bit_count())
    bit = 1 << pivot
    best = bit | _solve(open_nodes & ~foes[pivot] & ~bit, foes, room - 1)
    other = _solve(open_nodes & ~bit, foes, max(room, best.bit_count()))
    return taken | (other if other.bit_count() > best.bit_count() else best)


def _take_the_obvious(open_nodes: int, foes: list[int]) -> tuple[int, int]:
    """Take every node whose open foes conflict among each other: some largest set contains it (it is simplicial)."""
    taken, changed = 0, True
    while changed:
        changed = False
        for i in _bits(open_nodes):
            if not open_nodes >> i & 1:
                continue
            around = foes[i] & open_nodes
            if all(not around & ~foes[j] & ~(1 << j) for j in _bits(around)):
                taken |= 1 << i
                open_nodes &= ~(around | 1 << i)
                changed = True
    return taken, open_nodes


def _cliques(open_nodes: int, foes: list[int]) -> int:
    """How many cliques a greedy cover of the open nodes takes; an independent set has at most one node of each."""
    count = 0
    while open_nodes:
        count += 1
        bit = open_nodes & -open_nodes
        open_nodes ^= bit
        around = open_nodes & foes[bit.bit_length() - 1]
        while around:
            bit = around & -around
            open_nodes ^= bit
            around &= foes[bit.bit_length() - 1]
    return count


def _component(open_nodes: int, foes: list[int]) -> int:
    """The open nodes that are connected to the lowest one."""
    part, fresh = 0, open_nodes & -open_nodes
    while fresh:
        part |= fresh
        around = 0
        for i in _bits(fresh):
            around |= foes[i]
        fresh = around & open_nodes & ~part
    return part


def _bits(mask: int) -> list[int]:
    """Positions of the ones, ascending."""
    positions = []
    while mask:
        bit = mask & -mask
        positions.append(bit.bit_length() - 1)
        mask ^= bit
    return positions
