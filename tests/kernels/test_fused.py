"""The fused kernels against the reference, for any number of threads; and as operations of torch.library."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from asapool import kernels
from asapool.errors import AsapoolError
from asapool.nn import GCN, ASAPooling
from tests.graphs import random_batch, with_random_parameters


def big_batch(dtype=torch.float32, F=16):
    """Many graphs of all sizes."""
    return random_batch(1, graphs=60, most=40, F=F, dtype=dtype)


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("graphs", ["many", "one", "directed", "mixed"])
def test_equals_the_reference_to_rounding(graphs, hops):
    """All steps in a chain, with the same centres kept; otherwise rounding would decide ties."""
    x, edge_index, edge_weight, ptr = GRAPHS[graphs]()
    chosen = [
        kernel_outcome(x.double(), edge_index, edge_weight.double(), ptr, hops, b) for b in ("reference", "fused")
    ]
    for ours, theirs in zip(*chosen, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("graphs", ["many", "one", "mixed"])
def test_any_number_of_threads_gives_the_same_bits(graphs, loops_shared):
    """Matrix products are torch's own, and left out here."""
    x, edge_index, edge_weight, ptr = GRAPHS[graphs]()
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            results.append(kernel_outcome(x, edge_index, edge_weight, ptr))
        finally:
            torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def many_graphs():
    x, edge_index, edge_weight, batch = big_batch()
    return x, edge_index, edge_weight, torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])


def one_ring(N=3000):
    """A long ring with chords, so that it stays sparse."""
    i = torch.arange(N).repeat(2)
    j = torch.cat([(i[:N] + 1) % N, (i[:N] + 7) % N])
    g = torch.Generator().manual_seed(0)
    edges = torch.stack([torch.cat([i, j]), torch.cat([j, i])])
    return torch.randn(N, 16, generator=g), edges, torch.rand(4 * N, generator=g), torch.tensor([0, N])


def directed_graphs():
    x, edge_index, edge_weight, batch = random_batch(3, graphs=20, most=20, F=16, directed=True, loops=True)
    return x, edge_index, edge_weight, torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])


def mixed_graphs():
    """Small graphs, a long directed ring (its rows are sparse, not dense) and small graphs again."""
    small, ring = directed_graphs(), one_ring(1500)
    parts = (small, (ring[0], ring[1][:, ::2], ring[2][::2], ring[3]), small)
    first = [0, len(small[0]), len(small[0]) + 1500]
    edges = torch.cat([edges + f for (_, edges, _, _), f in zip(parts, first, strict=True)], 1)
    ptr = torch.cat([ptr[:-1] + f for (_, _, _, ptr), f in zip(parts, first, strict=True)])
    total = torch.tensor([first[-1] + len(small[0])])
    return (
        torch.cat([p[0].float() for p in parts]),
        edges,
        torch.cat([p[2].float() for p in parts]),
        torch.cat([ptr, total]),
    )


GRAPHS = {"many": many_graphs, "one": one_ring, "directed": directed_graphs, "mixed": mixed_graphs}


def kernel_outcome(x, edge_index, edge_weight, ptr, hops=1, backend="fused"):
    """Results and gradients of every kernel in a chain."""
    on = {"backend": backend}
    x, edge_weight = x.clone().requires_grad_(), edge_weight.clone().requires_grad_()
    pattern, slot = kernels.pack(edge_index, ptr, len(x), **on)
    weight = torch.zeros(pattern.col.numel(), dtype=x.dtype).index_add(0, slot, edge_weight)
    hat = kernels.Graph(pattern, weight).hat("add")
    line = torch.linspace(-1, 1, x.size(1), dtype=x.dtype)
    y = kernels.propagate(pattern, kernels.normalise(pattern, hat, **on), x, line, True, **on)
    y = kernels.activate(y, -0.1 * line, **on)
    clusters = kernels.reach(pattern, hops, **on)
    m = kernels.cluster_max(clusters, y, **on)
    alpha = kernels.attend(clusters, kernels.project(m, -line, **on), kernels.project(y, line, 0.2, **on), 0.2, **on)
    u = kernels.propagate(clusters, alpha, y[:, :3].contiguous(), **on)
    phi = kernels.score(pattern, weight, u, **on).view(-1).sigmoid()
    count = (ptr.diff() + 1) // 2
    perm, kept_ptr = kernels.select(torch.arange(len(x)) % 7 / 7, ptr, count, **on)
    x_p = kernels.gather(clusters, alpha, y, phi, perm, **on) + kernels.gate(x, phi, perm, **on)
    pooled, A = kernels.coarsen(clusters, alpha, pattern, hat, perm, kept_ptr, **on)
    induced, B = kernels.induce(pattern, weight, perm, kept_ptr, **on)
    E = pattern.col.numel()
    e = torch.linspace(-1, 1, 3 * E, dtype=x.dtype).view(E, 3).requires_grad_()
    attr = kernels.coarsen_features(clusters, alpha, pattern, weight, e, perm, pooled, **on)
    members, source = kernels.join(clusters, pattern, phi, perm, kept_ptr, **on)
    M = kernels.share(members, source, alpha, phi, **on)
    dynamic = kernels.attend_dynamic(clusters, m, y, line, 0.2, **on)
    lifted = kernels.propagate(clusters, alpha, y, transpose=True, **on)
    r = kernels.readout(x_p, kept_ptr, **on)
    listed, C = kernels.list_edges(kernels.Graph(pattern, weight), torch.arange(len(x)).flip(0), **on)
    squares = sum(t.square().sum() for t in (A, B, C, r, lifted, attr, dynamic))
    (squares + (M * line[source.clamp(max=15)]).sum()).backward()
    structures = [t for p in (pattern, clusters, pooled, induced, members) for t in (*p.tensors, p.diag)]
    results = [source, attr, M, dynamic, listed, C, y, m, alpha, phi, perm, x_p, A, B, lifted, r]
    return [*structures, *results, e.grad, x.grad, edge_weight.grad]


def sample_arguments():
    """One call of every operation, as torch.library sees it."""
    x, edge_index, edge_weight, batch = random_batch(5, graphs=3, most=6, F=4, directed=True)
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(batch).cumsum(0)])
    pattern, slot = kernels.pack(edge_index, ptr, len(x))
    P = pattern.tensors
    weight = torch.zeros(pattern.col.numel(), dtype=x.dtype).index_add(0, slot, edge_weight)
    hat = kernels.Graph(pattern, weight).hat("add")
    token = x[:, 0].clone()
    alpha = kernels.attend(pattern, None, token)
    phi = token.sigmoid()
    perm, kept_ptr = kernels.select(phi, ptr, (ptr.diff() + 1) // 2)
    pooled, _ = kernels.coarsen(pattern, alpha, pattern, hat, perm, kept_ptr)
    members, source = kernels.join(pattern, pattern, phi, perm, kept_ptr)
    grad = lambda t: t.detach().clone().requires_grad_()  # noqa: E731
    return {
        "pack": (edge_index, ptr, len(x)),
        "pack_rows": (pattern.rowptr, pattern.col, ptr),
        "reach": (pattern.ptr, pattern.rowptr, pattern.col, 2),
        "normalise": (*P, grad(hat)),
        "propagate": (*P, grad(weight), grad(x), grad(x[0]), True),
        "activate": (grad(x), grad(x[0])),
        "cluster_max": (*P, grad(x)),
        "attend": (*P, grad(phi), grad(token), 0.2),
        "project": (grad(x), grad(x[0]), 0.2),
        "score": (*P, grad(weight), grad(x[:, :3]), False),
        "select": (phi, ptr, (ptr.diff() + 1) // 2),
        "gate": (grad(x), grad(phi), perm),
        "gather": (*P, grad(alpha), grad(x), grad(phi), perm),
        "dropout_mask": (torch.tensor([3]), 50, 0.3, token),
        "coarsen": (*P, *P, grad(alpha), grad(hat), perm, ptr, kept_ptr, 0),
        "induce": (pattern.rowptr, pattern.col, perm),
        "list_edges": (*P, grad(weight), pattern.diag, perm.new_tensor(range(len(x)))),
        "readout": (grad(x), ptr, "sum,max"),
        "sum_neighbours": (*P, grad(weight), grad(x), grad(phi[:1])),
        "sum_messages": (*P, grad(weight), grad(x), grad(phi[:1]), grad(x[pattern.col]), grad(x[:4].t())),
        "attend_dynamic": (*P, grad(x), grad(x.flip(0)), grad(x[0]), 0.2),
        "coarsen_features": (
            *P,
            *P,
            *pooled.tensors,
            grad(alpha),
            grad(weight),
            grad(x[pattern.col]),
            perm,
            ptr,
            kept_ptr,
        ),
        "join": (pattern.rowptr, pattern.col, *P[:4], phi, perm, ptr, kept_ptr),
        "share": (*members.tensors, source, grad(alpha), grad(phi)),
        "graph_norm": (grad(x), ptr, grad(x[0]), grad(x[1]), grad(x[2]), 1e-5),
    }


@pytest.mark.parametrize("name", list(sample_arguments()))
def test_operations_keep_torch_library_s_contract(name):
    result = torch.library.opcheck(getattr(torch.ops.asapool, name).default, sample_arguments()[name])
    assert set(result.values()) == {"SUCCESS"}


class TwoLevels(torch.nn.Module):
    def __init__(self, semantics):
        super().__init__()
        self.first = ASAPooling(4, semantics=semantics, GNN=GCN)
        self.second = ASAPooling(4, semantics=semantics, GNN=GCN)

    def forward(self, x, edge_index, edge_weight, batch):
        one = self.first(x, edge_index, edge_weight, batch)
        return self.second(*one[:4]).x


@pytest.mark.parametrize("semantics", ["paper", "pyg"])  # tests/nn/test_compiled.py compiles one level with all options
def test_compiled_without_a_graph_break(semantics):
    """Two batches of other sizes, forward and backward; aot_eager checks the tracing and spares the C++ compiler."""
    torch.compiler.reset()
    model = with_random_parameters(TwoLevels(semantics).double())
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for seed in (1, 2):
        data = random_batch(seed, graphs=3 + seed, most=7, F=4)
        expected, got = model(*data), compiled(*data)
        torch.testing.assert_close(got, expected)
        grads = [
            torch.autograd.grad(out.square().sum(), list(model.parameters()), allow_unused=True)
            for out in (expected, got)
        ]
        for ours, theirs in zip(*grads, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("semantics", ["paper", "pyg"])
def test_exported_with_dynamic_sizes(semantics):
    model = with_random_parameters(TwoLevels(semantics).double()).eval()
    free = torch.export.Dim.DYNAMIC
    shapes = ({0: free}, {1: free}, {0: free}, {0: free})
    program = torch.export.export(model, random_batch(1, graphs=4, most=7, F=4), dynamic_shapes=shapes)
    for seed in (1, 2, 3):
        data = random_batch(seed, graphs=2 + seed, most=9, F=4)
        torch.testing.assert_close(program.module()(*data), model(*data))


def test_nan_is_not_hidden(backend):
    """A diverged training must be visible: NaN in the input is NaN in the output."""
    pattern, _ = kernels.pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2, backend=backend)
    for x in (torch.tensor([[float("nan")], [1.0]]), torch.tensor([[1.0], [float("nan")]])):
        ones = torch.ones(4)
        assert kernels.propagate(pattern, ones, x, None, True, backend=backend).isnan().all()
        assert kernels.activate(x, torch.ones(1), backend=backend).isnan().any()
        assert kernels.cluster_max(pattern, x, backend=backend).isnan().all()
        assert kernels.readout(x, pattern.ptr, backend=backend).isnan().all()
        assert kernels.attend(pattern, None, x.view(-1), backend=backend).isnan().all()


def test_second_derivatives_are_refused_rather_than_wrong():
    x, edge_index, edge_weight, batch = random_batch(5)
    out = ASAPooling(5).double()(x.requires_grad_(), edge_index, edge_weight, batch)
    with pytest.raises(AsapoolError, match="only first derivatives"):
        torch.autograd.grad(out.x.sum(), x, create_graph=True)


SCRIPT = textwrap.dedent(
    """
    import torch
    from asapool import kernels
    print(kernels.readout(torch.eye(3), torch.tensor([0, 1, 3])).sum().item())
    """
)


def run(**env):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return float(done.stdout)


FORK = textwrap.dedent(
    """
    import os, threading, torch
    from asapool import kernels
    torch.set_num_threads(2)
    x, ptr = torch.randn(60_000, 64), torch.arange(0, 60_001, 10)
    before = kernels.readout(x, ptr)
    assert any(thread.name.startswith("asapool") for thread in threading.enumerate()), "no helper was called for"
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(kernels.readout(x, ptr), before) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
)


def test_a_forked_process_gets_its_own_threads():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "0", done.stderr


def test_a_damaged_cache_is_ignored(tmp_path):
    cache = str(tmp_path / "cache")
    first = run(NUMBA_CACHE_DIR=cache)
    files = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert files, "the machine code was to be kept"
    for f in files:
        f.write_bytes(b"not machine code")
    assert run(NUMBA_CACHE_DIR=cache) == first


def test_a_cache_that_cannot_be_written_is_ignored(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache")) == run()


def test_a_loop_is_compiled_again_when_a_function_of_another_file_changes(tmp_path):
    """Machine code of `coarsen` includes code of `coarsen_sparse`; numba itself checks only the file of the loop."""
    package, stale = Path(kernels.__file__).parents[1], shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(package, tmp_path / "asapool", ignore=stale)
    script = """
        import numpy as np
        from importlib import import_module
        two = np.array([0, 1, 2])
        loop = import_module("asapool.kernels.fused.coarsen").kept_by_node
        print(loop(two, two[:2], np.ones(2), two[:2], True)[2].tolist())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    source, shown = package / "kernels/fused/coarsen_sparse.py", []
    for was, becomes in (("= p, value[e]\n", "= p, 2 * value[e]\n"), ("", "")):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
        shown.append(ran.stdout.strip())
        text = source.read_text(encoding="utf-8")
        assert was in text
        source.write_text(text.replace(was, becomes), encoding="utf-8")
    assert shown == ["[1.0, 1.0]", "[2.0, 2.0]"]
