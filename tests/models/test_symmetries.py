"""Properties of every method: invariance to batching and node numbers, unusual graphs, gradients for all weights."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asapool.models import ModelConfig, build, method_names
from tests.models.batches import pack, random_graphs, relabelled

METHODS = method_names(trainer="gradient", builtin=True)

OPTIONS = [{}, {"conv": "gin"}, {"conv": "sage", "batch_norm": True, "jumping": True}]


def made(method, seed=0, **options):
    config = ModelConfig(**{"method": method, "hidden": 16, **options})
    model = build(config, 4, 3, seed, typical_nodes=16).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for name, buffer in model.named_buffers():  # batch norm's statistics: not the ones that change nothing
        if "running" in name:
            drawn = torch.rand(buffer.shape, generator=generator)
            buffer.copy_(drawn / 10 if "mean" in name else drawn + 0.5)
    return model


def tied(model, graphs):
    """Whether it is arbitrary which of two different, equally fit clusters is kept."""
    for graph in graphs if model.config.method in ("asap", "asap+") else []:
        for step in model.hierarchy(*pack([graph])):
            kept = torch.zeros(len(step.phi), dtype=torch.bool)
            kept[step.perm] = True
            close = (step.phi[kept][:, None] - step.phi[~kept]).abs() < 1e-9
            different = (step.cluster_x[kept][:, None] - step.cluster_x[~kept]).abs().amax(2) > 1e-9
            if (close & different).any():
                return True
    return False


seeds = st.integers(0, 10**6)
variants = st.sampled_from(OPTIONS)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None)
@given(seed=seeds, options=variants, sizes=st.lists(st.integers(0, 12), min_size=1, max_size=5), weighted=st.booleans())
def test_a_batch_gives_what_its_graphs_give_one_by_one(method, seed, options, sizes, weighted):
    model = made(method, seed, **options)
    graphs = random_graphs(seed, sizes, weighted=weighted)
    with torch.no_grad():
        alone = torch.cat([model(*pack([graph])) for graph in graphs])
        torch.testing.assert_close(model(*pack(graphs)), alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None)
@given(seed=seeds, options=variants, sizes=st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_node_numbers_do_not_matter(method, seed, options, sizes):
    model = made(method, seed, **options)
    graphs = random_graphs(seed, sizes, weighted=True)
    with torch.no_grad():
        assume(not tied(model, graphs))
        expected = model(*pack(graphs))
        torch.testing.assert_close(model(*pack(relabelled(graphs, seed))), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_both_backends_agree(method):
    graphs = pack(random_graphs(4, [9, 1, 6, 0, 12], weighted=True))
    fused, reference = (made(method, 3, backend=backend) for backend in ("fused", "reference"))
    torch.testing.assert_close(fused(*graphs), reference(*graphs))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [[1], [0], [0, 0], [0, 4, 0], [1, 1, 1]], ids=str)
def test_odd_batches_work_and_train(method, sizes):
    graphs = pack(random_graphs(0, sizes))
    model = made(method).train()
    logits, penalty = model.forward_with_penalty(*graphs)
    assert logits.shape == (len(sizes), 3)
    (logits.sum() + penalty).backward()
    assert logits.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_a_graph_without_edges_works(method):
    graphs = pack(random_graphs(0, [5, 3], density=0.0))
    assert graphs.col.numel() == 0
    assert made(method)(*graphs).isfinite().all()
    assert made(method)(*graphs[:4]).isfinite().all()


@pytest.mark.parametrize("method", METHODS)
def test_no_weights_means_weights_of_one(method):
    graphs = pack(random_graphs(1, [5, 8]))
    torch.testing.assert_close(made(method)(*graphs[:4]), made(method)(*graphs))


@pytest.mark.parametrize("method", ["asap", "diffpool", "topk", "sagpool", "none", "set2set"])
def test_edge_weights_matter(method):
    graphs = pack(random_graphs(1, [5, 8], weighted=True))
    assert not torch.allclose(made(method)(*graphs[:4]), made(method)(*graphs))


def test_weights_of_another_precision_are_taken():
    graphs = pack(random_graphs(1, [5, 8], weighted=True))
    single = graphs.weight.float()
    assert torch.equal(made("asap")(*graphs[:4], single), made("asap")(*graphs[:4], single.double()))


def silent(config):
    """The ends of the names of the weights that cannot have a gradient, because what they add cancels."""
    ends = []
    plus = config.method.endswith("+")
    if (
        config.method in ("asap", "asap+") and config.semantics == "paper"
    ):  # as printed, the query: see asapool/nn/attention.py
        ends += ["attention.W.weight", "attention.W.bias", "attention.c"]
    if config.method == "global-attention":  # the same number for all nodes cancels in the softmax
        ends += ["gate_nn.bias"]
    if plus:  # a norm follows every linear map
        ends += ["conv.first.bias", "conv.second.bias", "conv.W.bias"]
    elif config.batch_norm and config.method != "mlp":  # the norm removes the mean
        ends += [f"convs.{level}.conv.{'W.' if config.conv == 'sage' else ''}bias" for level in range(config.levels)]
    return tuple(ends)


@pytest.mark.parametrize(
    ("method", "options"),
    [(method, options) for method in METHODS for options in OPTIONS]
    + [("asap", {"semantics": "authors"}), ("asap", {"semantics": "pyg"})]
    + [("global-attention", {"attention_transform": True})],
    ids=str,
)
def test_the_gradient_reaches_every_weight(method, options):
    # large and sparse: a small pooled graph is complete, so all nodes are equal and nothing is learned
    graphs = pack(random_graphs(7, [60, 50, 70], weighted=True, density=0.05))
    # counts come with a data set, and are tested there
    quiet = {"counts": "none", "conv_dropout": 0.0, "readout_dropout": 0.0} if method.endswith("+") else {}
    never = None
    for seed in range(4):  # by chance one model's ReLUs may all be on the same side; not those of four
        model = made(method, seed, dropout=0.0, levels=2, **quiet, **options).train()
        g = torch.Generator().manual_seed(seed)
        for p in model.parameters():  # zero biases would leave the scores of a cluster on one side of the LeakyReLU
            p.data += 0.3 * torch.randn(p.shape, generator=g, dtype=p.dtype)
        logits, penalty = model.forward_with_penalty(*graphs)
        (torch.nn.functional.cross_entropy(logits, torch.arange(3)) + penalty).backward()
        without = {n for n, p in model.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-12}
        never = without if never is None else never & without
    assert never == {n for n, _ in model.named_parameters() if n.endswith(silent(model.config))}
