"""Weighted sums of rows, and products with rows, for one list of neighbours; the loops of several operations use them.

A sum stays in registers while the walk goes along the neighbours: the columns are taken 64, 32 or 16 at a time (half of
that in float64), and the neighbours are walked once for each piece. What remains at the end is covered by a piece that
overlaps the one before, which gives the same numbers again.
"""

from __future__ import annotations

from asapool.kernels.fused.compiled import helper
from asapool.kernels.fused.vectors import fill, lanes, larger, load, plus, store, times, total, zero


@helper
def sum_row(begin, end, col, edge, value, first, x, F, start, scale, relu, y):  # type: ignore[no-untyped-def]
    """y = Σ_e value_e x_col(e) + scale · start, then max(·, 0) if relu; a row of F numbers.

    The entries are begin … end; `edge` has the position of an entry's value (None: its own), `first` is subtracted from
    the columns. start may be None. The others are pointers: to a matrix of rows x, and to single rows start and y.
    """
    L, nought = lanes(x), zero(x)
    if F < L:
        e = begin
        for f in range(F):
            y[f] = nought
        while e + 1 < end:  # two neighbours at a time: half as many loads and stores of y
            a, b = (value[e], value[e + 1]) if edge is None else (value[edge[e]], value[edge[e + 1]])
            j, k = (col[e] - first) * F, (col[e + 1] - first) * F
            for f in range(F):
                y[f] += a * x[j + f] + b * x[k + f]
            e += 2
        if e < end:
            a, j = value[e] if edge is None else value[edge[e]], (col[e] - first) * F
            for f in range(F):
                y[f] += a * x[j + f]
        if start is not None:
            for f in range(F):
                y[f] += scale * start[f]
        for f in range(F if relu else 0):
            y[f] = nought if y[f] < nought else y[f]  # in this order NaN stays NaN
        return
    nil, factor, f = fill(x, nought), fill(x, scale), 0
    while f + 4 * L <= F:
        a, b, c, d = nil, nil, nil, nil
        for e in range(begin, end):
            w, j = fill(x, value[e] if edge is None else value[edge[e]]), (col[e] - first) * F + f
            a, b = plus(a, times(w, load(x, j))), plus(b, times(w, load(x, j + L)))
            c, d = plus(c, times(w, load(x, j + 2 * L))), plus(d, times(w, load(x, j + 3 * L)))
        if start is not None:
            a, b = plus(a, times(factor, load(start, f))), plus(b, times(factor, load(start, f + L)))
            c, d = plus(c, times(factor, load(start, f + 2 * L))), plus(d, times(factor, load(start, f + 3 * L)))
        if relu:
            a, b, c, d = larger(nil, a), larger(nil, b), larger(nil, c), larger(nil, d)
        store(y, f, a)
        store(y, f + L, b)
        store(y, f + 2 * L, c)
        store(y, f + 3 * L, d)
        f += 4 * L
    while f + 2 * L <= F:
        a, b = nil, nil
        for e in range(begin, end):
            w, j = fill(x, value[e] if edge is None else value[edge[e]]), (col[e] - first) * F + f
            a, b = plus(a, times(w, load(x, j))), plus(b, times(w, load(x, j + L)))
        if start is not None:
            a, b = plus(a, times(factor, load(start, f))), plus(b, times(factor, load(start, f + L)))
        if relu:
            a, b = larger(nil, a), larger(nil, b)
        store(y, f, a)
        store(y, f + L, b)
        f += 2 * L
    while f < F:
        f = min(f, F - L)
        a = nil
        for e in range(begin, end):
            w, j = fill(x, value[e] if edge is None else value[edge[e]]), (col[e] - first) * F + f
            a = plus(a, times(w, load(x, j)))
        if start is not None:
            a = plus(a, times(factor, load(start, f)))
        store(y, f, larger(nil, a) if relu else a)
        f += L


@helper
def scale_row(y, F, scale):  # type: ignore[no-untyped-def]
    """y *= scale, for a row of F numbers."""
    L, factor, f = lanes(y), fill(y, scale), 0
    while f + L <= F:
        store(y, f, times(factor, load(y, f)))
        f += L
    for k in range(f, F):
        y[k] *= scale


@helper
def match_row(begin, end, col, first, x, F, g, out):  # type: ignore[no-untyped-def]
    """out_e = x_col(e) · g for the entries begin … end; x points to a matrix with rows of F numbers, g to a row."""
    L, nought = lanes(x), zero(x)
    if F == L:
        a = load(g, 0)
        for e in range(begin, end):
            out[e] = total(times(a, load(x, (col[e] - first) * F)))
    elif F == 4 * L:
        a, b, c, d = load(g, 0), load(g, L), load(g, 2 * L), load(g, 3 * L)
        for e in range(begin, end):
            j = (col[e] - first) * F
            v = plus(times(a, load(x, j)), times(b, load(x, j + L)))
            w = plus(times(c, load(x, j + 2 * L)), times(d, load(x, j + 3 * L)))
            out[e] = total(plus(v, w))
    else:
        nil = fill(x, nought)
        for e in range(begin, end):
            j, f, rest = (col[e] - first) * F, 0, nought
            v, w = nil, nil
            while f + 2 * L <= F:
                v = plus(v, times(load(g, f), load(x, j + f)))
                w = plus(w, times(load(g, f + L), load(x, j + f + L)))
                f += 2 * L
            if f + L <= F:
                v = plus(v, times(load(g, f), load(x, j + f)))
                f += L
            while f < F:
                rest += g[f] * x[j + f]
                f += 1
            out[e] = rest + total(plus(v, w)) if F > L else rest


@helper
def match_rows(begin, end, col, first, x, z, F, g, h, out):  # type: ignore[no-untyped-def]
    """out_e = x_col(e) · g + z_col(e) · h; F is a multiple of the lanes."""
    L = lanes(x)
    for e in range(begin, end):
        j, f = (col[e] - first) * F, L
        a, b = times(load(x, j), load(g, 0)), times(load(z, j), load(h, 0))
        while f < F:
            a, b = plus(a, times(load(x, j + f), load(g, f))), plus(b, times(load(z, j + f), load(h, f)))
            f += L
        out[e] = total(plus(a, b))
