"""The fused kernels against the reference, for any number of threads; and as operations of torch.library."""

import os
import shutil
import textwrap
from pathlib import Path

import pytest
import torch

from asapool import kernels
from asapool.errors import AsapoolError
from asapool.nn import GCN, ASAPooling
from tests.children import run_python
from tests.graphs import random_batch, with_random_parameters
from tests.kernels.chain import GRAPHS, kernel_outcome


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


OPERATIONS = (  # listed, since making the arguments compiles loops, which must not happen while tests are collected
    "pack", "pack_rows", "reach", "normalise", "propagate", "activate", "cluster_max", "attend", "project", "score",
    "select", "gate", "gather", "dropout_mask", "coarsen", "induce", "list_edges", "readout", "sum_neighbours",
    "sum_messages", "attend_dynamic", "coarsen_features", "join", "share", "graph_norm",
)  # fmt: skip


@pytest.fixture(scope="module")
def samples():
    made = sample_arguments()
    assert tuple(made) == OPERATIONS
    return made


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_keep_torch_library_s_contract(name, samples):
    result = torch.library.opcheck(getattr(torch.ops.asapool, name).default, samples[name])
    assert set(result.values()) == {"SUCCESS"}


class TwoLevels(torch.nn.Module):
    def __init__(self, semantics):
        super().__init__()
        self.first = ASAPooling(4, semantics=semantics, GNN=GCN)
        self.second = ASAPooling(4, semantics=semantics, GNN=GCN)

    def forward(self, x, edge_index, edge_weight, batch):
        one = self.first(x, edge_index, edge_weight, batch)
        return self.second(*one[:4]).x


def test_compiled_without_a_graph_break():
    """Two batches of other sizes, forward and backward; aot_eager checks the tracing and spares the C++ compiler.

    tests/nn/test_compiled.py compiles one level with all options.
    """
    torch.compiler.reset()
    model = with_random_parameters(TwoLevels("paper").double())
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
    done = run_python(SCRIPT, env={**os.environ, **env})
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
    done = run_python(FORK)
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
    script = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import numpy as np
        from importlib import import_module
        two = np.array([0, 1, 2])
        loop = import_module("asapool.kernels.fused.coarsen").kept_by_node
        print(loop(two, two[:2], np.ones(2), two[:2], True)[2].tolist())
    """
    source, shown = package / "kernels/fused/coarsen_sparse.py", []
    for was, becomes in (("= p, value[e]\n", "= p, 2 * value[e]\n"), ("", "")):
        ran = run_python(textwrap.dedent(script))
        shown.append(ran.stdout.strip() or ran.stderr)
        text = source.read_text(encoding="utf-8")
        assert was in text
        source.write_text(text.replace(was, becomes), encoding="utf-8")
    assert shown == ["[1.0, 1.0]", "[2.0, 2.0]"]
