"""The classifiers are the paper's: the same weights in layers of torch_geometric's form give the same logits."""

import subprocess
import sys

import pytest
import torch

from asapool.errors import ConfigError, InputError
from asapool.models import ModelConfig, build, method_names
from asapool.nn import PoolStep, Readout
from tests.models.batches import pack, random_graphs

METHODS = method_names(trainer="gradient", builtin=True)

GRAPHS = pack(random_graphs(0, [7, 9, 5, 12]))


def made(method, seed=0, in_channels=4, num_classes=3, **options):
    config = ModelConfig(method=method, hidden=8, **options)
    return build(config, in_channels, num_classes, seed, typical_nodes=8).double().eval()


def head(model, r):
    return model.head.lin2(model.head.lin1(r).relu())


@pytest.mark.parametrize("semantics", ["paper", "authors", "pyg"])
def test_asap_is_convolve_pool_read_out_and_add(semantics):
    model = made("asap", semantics=semantics)
    x, edges, weight, batch = GRAPHS.x, GRAPHS.edge_index, GRAPHS.weight, GRAPHS.batch
    summary = 0
    for conv, pool in zip(model.encoder.convs, model.encoder.pools, strict=True):
        x, edges, weight, batch, _ = pool(conv.conv(x, edges, weight), edges, weight, batch)
        summary = summary + Readout()(x, batch)
    torch.testing.assert_close(model(*GRAPHS), head(model, summary))


@pytest.mark.parametrize("method", ["topk", "sagpool", "none"])
def test_hierarchies_equal_those_of_torch_geometrics_layers(method):
    from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling, global_max_pool, global_mean_pool

    model = made(method)
    x, edges, batch = GRAPHS.x, GRAPHS.edge_index, GRAPHS.batch
    summary = 0
    for conv, pool in zip(model.encoder.convs, model.encoder.pools, strict=True):
        theirs = GCNConv(x.size(1), 8).double()
        theirs.load_state_dict(conv.conv.state_dict())
        x = theirs(x, edges).relu()
        if method == "topk":
            layer = TopKPooling(8).double()
            layer.select.weight.data = pool.p.data[None]
            x, edges, _, batch, _, _ = layer(x, edges, None, batch)
        elif method == "sagpool":
            layer = SAGPooling(8, GNN=GCNConv).double()
            layer.gnn.load_state_dict(pool.gnn.state_dict())
            layer.select.weight.data.fill_(1.0)
            x, edges, _, batch, _, _ = layer(x, edges, None, batch)
        summary = summary + torch.cat([global_mean_pool(x, batch), global_max_pool(x, batch)], 1)
    torch.testing.assert_close(model(*GRAPHS), head(model, summary))


def test_diffpool_equals_torch_geometrics_dense_layers_graph_by_graph():
    from torch_geometric.nn import DenseGCNConv, dense_diff_pool

    model = made("diffpool", levels=2, semantics="authors")
    for x, A in random_graphs(0, [7, 9]):
        summary, penalty, graph = 0, 0, pack([(x, A)])
        x, A = x[None], A[None]
        for conv, pool in zip(model.encoder.convs, model.encoder.pools, strict=True):
            embed, assign = DenseGCNConv(x.size(2), 8).double(), DenseGCNConv(x.size(2), pool.clusters).double()
            embed.load_state_dict(conv.conv.state_dict())
            assign.load_state_dict(pool.gnn.state_dict())
            # DenseGCNConv puts 1 on every diagonal, GCNConv only on an empty one: hand it what GCNConv would see
            loops = A + torch.diag_embed((A.diagonal(dim1=1, dim2=2) == 0).double())
            z, s = embed(x, loops, add_loop=False).relu(), assign(x, loops, add_loop=False)
            x, A, link, entropy = dense_diff_pool(z, A, s)
            summary = summary + torch.cat([x.mean(1), x.amax(1)], 1)
            penalty = penalty + link + entropy
        logits, ours = model.forward_with_penalty(*graph)
        torch.testing.assert_close(logits, head(model, summary))
        torch.testing.assert_close(ours, penalty)


@pytest.mark.parametrize(("method", "width"), [("set2set", 16), ("global-attention", 8), ("sortpool", 256)])
def test_global_methods_pool_once_after_all_layers(method, width):
    from torch_geometric.nn import GCNConv, SortAggregation

    model = made(method)
    assert model.head.lin1.in_features == width
    model.encoder.convs[-1].conv.bias.data += 10.0  # no ties at 0, which torch_geometric breaks differently
    x = GRAPHS.x
    for conv in model.encoder.convs:
        theirs = GCNConv(x.size(1), 8).double()
        theirs.load_state_dict(conv.conv.state_dict())
        x = theirs(x, GRAPHS.edge_index).relu()
    pool = SortAggregation(32) if method == "sortpool" else model.encoder.pool.pool
    torch.testing.assert_close(model(*GRAPHS), head(model, pool(x, GRAPHS.batch)))


@pytest.mark.parametrize("hidden", [16, 48, 64, 100, 128])
def test_sortpool_reads_as_many_nodes_as_fit_into_256_numbers(hidden):
    pool = build(ModelConfig(method="sortpool", hidden=hidden), 3, 2).encoder.pool
    assert pool.out_channels <= 256 < pool.out_channels + hidden


def test_mlp_uses_the_sum_of_the_features_and_no_edge():
    model = made("mlp")
    sums = torch.stack([x.sum(0) for x in GRAPHS.x.split(GRAPHS.ptr.diff().tolist())])
    expected = head(model, model.encoder.lin(sums).relu())
    torch.testing.assert_close(model(*GRAPHS), expected)
    edgeless = GRAPHS._replace(rowptr=torch.zeros_like(GRAPHS.rowptr), col=GRAPHS.col[:0], weight=GRAPHS.weight[:0])
    torch.testing.assert_close(model(*edgeless), expected)


def test_jumping_concatenates_the_readouts_or_takes_the_maximum():
    levels = made("asap", jumping=True)
    steps = levels.hierarchy(*GRAPHS)
    r = torch.cat([Readout()(step.x, ptr=step.ptr) for step in steps], 1)
    assert r.shape == (4, 3 * 16)
    torch.testing.assert_close(levels(*GRAPHS), head(levels, r))
    layers = made("global-attention", jumping=True)
    x, seen = GRAPHS.x, []
    for conv in layers.encoder.convs:
        x = conv.conv(x, GRAPHS.edge_index)
        seen.append(x)
    largest = torch.maximum(torch.maximum(seen[0], seen[1]), seen[2])
    torch.testing.assert_close(layers(*GRAPHS), head(layers, layers.encoder.pool.pool(largest, GRAPHS.batch)))


def test_batch_norm_is_between_convolution_and_relu():
    model = made("none", batch_norm=True, levels=1).train()
    model.head.dropout.p = 0.0
    block = model.encoder.convs[0]
    y = block.conv(GRAPHS.x, GRAPHS.edge_index)
    assert (y < 0).any()  # no ReLU before the norm
    y = ((y - y.mean(0)) / (y.var(0, unbiased=False) + 1e-5).sqrt()).relu()
    torch.testing.assert_close(model(*GRAPHS), head(model, Readout()(y, GRAPHS.batch)))


def test_one_node_alone_can_be_trained_on_with_batch_norm():
    model = made("none", batch_norm=True).train()
    assert model(*pack(random_graphs(0, [1]))).isfinite().all()


@pytest.mark.parametrize("method", ["asap", "topk", "sagpool"])
def test_each_level_has_its_ratio(method):
    model = made(method, ratio=(0.8, 0.5, 2))
    steps = list(model.encoder.steps(GRAPHS.x, model.pack(*GRAPHS)))
    assert [step.ptr.diff().tolist() for step in steps] == [[6, 8, 4, 10], [3, 4, 2, 5], [2, 2, 2, 2]]


def test_every_setting_of_asap_reaches_its_layers():
    options = {"hops": 2, "aggregate": "cluster", "soft_edges": False, "max_neighbours": 3, "backend": "reference"}
    for pool in made("asap", attention="t2t", fitness="gcn", attention_dropout=0.25, **options).encoder.pools:
        assert {name: getattr(pool, name) for name in options} == options
        assert (type(pool.attention).__name__, type(pool.fitness).__name__) == ("Token2Token", "GCN")
        assert pool.attention.dropout == 0.25
    assert made("asap", master="mean").encoder.pools[0].attention.master == "mean"
    assert made("asap", semantics="pyg").encoder.pools[0].semantics == "pyg"


def test_every_setting_of_the_baselines_reaches_its_layer():
    assert made("set2set", set2set_steps=10).encoder.pool.pool.processing_steps == 10
    assert made("global-attention", attention_transform=True).encoder.pool.pool.nn is not None
    assert made("sagpool", semantics="authors").encoder.pools[0].gnn.loops == "fill"
    _, plain = made("diffpool", link_weight=0.0, entropy_weight=0.0).forward_with_penalty(*GRAPHS)
    _, link = made("diffpool", entropy_weight=0.0).forward_with_penalty(*GRAPHS)
    _, entropy = made("diffpool", link_weight=0.0, entropy_weight=2.0).forward_with_penalty(*GRAPHS)
    _, both = made("diffpool", link_weight=3.0, entropy_weight=2.0).forward_with_penalty(*GRAPHS)
    assert plain.item() == 0
    torch.testing.assert_close(both, 3 * link + entropy)


def test_diffpools_clusters_are_fixed_by_the_typical_graph():
    model = build(ModelConfig(method="diffpool"), 4, 2, typical_nodes=39)
    assert [pool.clusters for pool in model.encoder.pools] == [20, 10, 5]
    with pytest.raises(ConfigError, match="build\\(\\) needs typical_nodes"):
        build(ModelConfig(method="diffpool"), 4, 2)


def test_the_logits_are_computed_from_the_hierarchy():
    model = made("asap", semantics="authors")
    steps = model.hierarchy(*GRAPHS)
    assert [type(step) for step in steps] == [PoolStep] * 3
    assert all(step.after is not None for step in steps)
    r = sum(Readout()(step.x, ptr=step.ptr) for step in steps)
    torch.testing.assert_close(model(*GRAPHS), head(model, r))
    with pytest.raises(ConfigError, match="'topk' forms no clusters around nodes"):
        made("topk").hierarchy(*GRAPHS)


@pytest.mark.parametrize("method", METHODS)
def test_only_diffpool_has_a_penalty(method):
    model = made(method)
    logits, penalty = model.forward_with_penalty(*GRAPHS)
    assert torch.equal(logits, model(*GRAPHS))
    assert penalty.shape == ()
    assert (penalty.item() > 0) == (method == "diffpool")


def test_dropout_is_only_before_the_last_layer():
    model = made("none").train()
    seen = []
    model.head.lin1.register_forward_hook(lambda module, inputs, output: seen.append(output.relu()))
    model.head.lin2.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    assert not torch.equal(model(*GRAPHS), model(*GRAPHS))
    h, dropped, h_again, _ = seen
    assert torch.equal(h, h_again)  # nothing was dropped before
    assert set((dropped[h > 0] / h[h > 0]).detach().round(decimals=6).tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bytes_and_leaves_torchs_generator_alone(method):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two, other = made(method, 1), made(method, 1), made(method, 2)
    assert torch.equal(torch.rand(1), expected)
    pairs = list(zip(one.parameters(), two.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)


def test_features_of_another_width_get_a_sentence():
    for method in ("asap", "mlp"):
        with pytest.raises(InputError, match=r"shape \(nodes, 4\).*got \(33, 3\)"):
            made(method)(GRAPHS.x[:, :3], *GRAPHS[1:])
    with pytest.raises(ConfigError, match="num_classes must be a whole number of at least 1, got 0"):
        build(ModelConfig(), 4, 0)


@pytest.mark.parametrize("method", ["asap", "none", "mlp"])
def test_the_fast_path_can_be_exported(method):
    model = made(method).float()
    small = [t.float() if t.is_floating_point() else t for t in pack(random_graphs(1, [3, 5]))[:4]]
    anything = {0: torch.export.Dim.DYNAMIC}
    args = tuple(t.float() if t.is_floating_point() else t for t in GRAPHS[:4])
    program = torch.export.export(model, args, dynamic_shapes=(anything,) * 4).module()
    torch.testing.assert_close(program(*small), model(*small))


def test_the_whole_asap_model_compiles_as_one_graph():
    model = made("asap", levels=1)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    torch.testing.assert_close(compiled(*GRAPHS), model(*GRAPHS))


def test_importing_models_is_light():
    heavy = "{'torch_geometric', 'numba', 'safetensors'}"
    code = f"import sys, asapool.models.checkpoint; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
