"""Show, one by one, where other implementations of ASAP depart from the paper.

    python examples/peers.py            all that can be shown here
    python examples/peers.py sign       one of them

The names are those of docs/semantics.md. torch-geometric-pool is shown where it is installed.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO

import torch
from torch_geometric.nn import ASAPooling as PyGPooling
from torch_geometric.nn import GCNConv

from asapool.nn import ASAPooling

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))


def attempt(what: Callable[[], object]) -> str:
    """What happens: 'works', or the name of the error."""
    try:
        with redirect_stderr(StringIO()):  # a failed export prints the graph that it had recorded
            what()
    except Exception as error:  # whatever a peer raises is the finding
        return f"fails ({type(error).__name__})"
    return "works"


def sign() -> str:
    """How often PyG keeps the least fit clusters."""
    wrong = 0
    for seed in range(1000):
        torch.manual_seed(seed)
        wrong += PyGPooling(8).select.weight.item() < 0
    return f"of 1000 initialisations PyG keeps the least fit clusters in {wrong}, asapool in 0"


def weights() -> str:
    """What becomes of SᵀAS for unweighted input."""
    ours = ASAPooling(8)(X, PATH).edge_weight
    return f"edge weights for an unweighted graph: PyG {PyGPooling(8)(X, PATH)[2]}, asapool {len(ours)} numbers"


def gradient() -> str:
    """Whether pooled edge weights can be trained through."""

    def back(layer: torch.nn.Module) -> None:
        layer(X, PATH, torch.ones(6, requires_grad=True))[2].sum().backward()

    theirs, ours = (attempt(lambda layer=layer: back(layer)) for layer in (PyGPooling(8), ASAPooling(8)))
    return f"backward through weighted edges: PyG {theirs}, asapool {ours}"


def ratio() -> str:
    """How many of four clusters ratio=1.0 keeps."""
    theirs, ours = (len(layer(X, PATH)[4]) for layer in (PyGPooling(8, 1.0), ASAPooling(8, 1.0)))
    return f"ratio=1.0 on 4 nodes: PyG keeps {theirs}, asapool {ours}"


def memory() -> str:
    """Numbers held per edge by the attention, on a complete graph of 300 nodes with 128 features."""
    edges = torch.ones(300, 300).nonzero().t().contiguous()
    x = torch.randn(300, 128)
    result = []
    for layer in (PyGPooling(128, GNN=GCNConv), ASAPooling(128, semantics="pyg", GNN=GCNConv)):
        with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            layer(x, edges)
        result.append(max(event.cpu_memory_usage for event in profile.events()) / 2**20)
    what = "largest tensor torch allocates, 300 nodes, 90,000 edges, 128 features"
    return f"{what}: PyG {result[0]:.0f} MB, asapool {result[1]:.1f} MB"


def bf16() -> str:
    """bfloat16."""
    both = [
        attempt(lambda layer=layer: layer.bfloat16()(X.bfloat16(), PATH)) for layer in (PyGPooling(8), ASAPooling(8))
    ]
    return f"bfloat16: PyG {both[0]}, asapool {both[1]}"


def export() -> str:
    """torch.export."""
    both = [
        attempt(lambda layer=layer: torch.export.export(layer, (X, PATH))) for layer in (PyGPooling(8), ASAPooling(8))
    ]
    return f"torch.export: PyG {both[0]}, asapool {both[1]}"


def compiled() -> str:
    """torch.compile without graph breaks."""
    both = [
        attempt(lambda layer=layer: torch.compile(layer, fullgraph=True, backend="aot_eager")(X, PATH))
        for layer in (PyGPooling(8), ASAPooling(8))
    ]
    return f"torch.compile(fullgraph=True): PyG {both[0]}, asapool {both[1]}"


def query() -> str:
    """Whether the master query changes the attention, with σ where each text puts it, on a ring of 100 nodes."""
    result, around = [], torch.arange(100)
    ring = torch.stack([torch.cat([around, around.roll(1)]), torch.cat([around.roll(1), around])])
    x = torch.randn(100, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for semantics in ("paper", "authors"):
        torch.manual_seed(0)
        layer = ASAPooling(8, semantics=semantics).double()
        before = layer.explain(x, ring).assignment.alpha
        torch.nn.init.zeros_(layer.attention.W.weight)  # no master query at all
        result.append((layer.explain(x, ring).assignment.alpha - before).abs().max().item())
    inside, outside = (f"{move:.2g}" for move in result)
    return f"without the master query memberships move by {inside} (σ inside, paper), {outside} (σ outside, authors)"


def tgp() -> str:
    """Pooled edges and node numbers of torch-geometric-pool."""
    if find_spec("tgp") is None:
        return "torch-geometric-pool is not installed here: pip install torch-geometric-pool"
    from tgp.poolers import ASAPooling as TGPooling

    torch.manual_seed(0)
    long = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]])
    out = TGPooling(8, ratio=0.5)(x=torch.randn(6, 8), adj=long)
    kept = out.so.node_index.tolist()
    among = sum(1 for j, i in long.t().tolist() if i in kept and j in kept)
    edges = out.edge_index.size(1)
    return f"tgp keeps nodes {kept} of a path of 6; {among} edges of the path join kept nodes, and it returns {edges}"


SHOWS = (sign, weights, gradient, ratio, memory, bf16, export, compiled, query, tgp)


def main(wanted: list[str]) -> int:
    """Print what each named show finds; all of them when none is named."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    known = {show.__name__: show for show in SHOWS}
    for name in wanted or known:
        if name not in known:
            print(f"peers.py: {name!r} is not one of {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"{name:9} {known[name]()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
