"""Sentences of docs/performance.md that benchmarks work out, by hand."""

from benchmarks.other_sections import scaling_section

MACHINE = {"cpu": "abacus", "cores": 1, "python": "3.11", "torch": "2", "torch_geometric": "2",
           "numba": "0", "commit": "c", "load": 0.0}  # fmt: skip


def test_growth_is_told_from_the_fastest_size_too():
    def run(side, edges, ns):
        return {"side": side, "edges": edges, "seconds": 1.0, "nanoseconds_per_edge": ns, "peak_bytes": 2**30}

    per_edge = {10_000: 500, 100_000: 300, 1_000_000: 200, 10_000_000: 360}
    runs = [run("asapool", edges, ns) for edges, ns in per_edge.items()]
    runs += [run("asapool, memory kept", edges, ns - 100) for edges, ns in per_edge.items()]
    said = scaling_section({"runs": runs, "machine": MACHINE})
    assert "From 100,000 to 10,000,000 edges the time per edge grows 1.20× (goal: at most 1.5×), or 1.30× after" in said
    assert "From 1,000,000 edges, where an edge takes least time, it grows 1.80×, or 2.60×." in said
