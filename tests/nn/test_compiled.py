"""What docs/semantics.md promises of torch.compile and torch.export: every row of TABLE, and nothing else.

The rows cover every value of every option, and every pair of backend and way; not the full product.
"""

import contextlib

import pytest
import torch
from torch._inductor import config as inductor

from asapool.nn import ASAPooling

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 0], [1, 0, 2, 1, 3, 2, 5, 4, 6, 5, 3]])
BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 1])
F32, F64, BF16 = torch.float32, torch.float64, torch.bfloat16

TABLE = [  # options, dtype, autocast
    ({}, F32, False),
    ({"semantics": "pyg", "hops": 2, "max_neighbours": 2, "master": "mean", "add_self_loops": True}, F32, False),
    ({"attention": "t2t", "fitness": "gcn", "soft_edges": False, "max_neighbours": 1}, F32, False),
    ({"attention": "s2t", "fitness": "basic-leconv", "aggregate": "none", "semantics": "authors"}, F64, False),
    ({"dropout": 0.3, "aggregate": "cluster"}, BF16, False),
    ({"semantics": "authors", "dropout": 0.3, "max_neighbours": 2}, F32, True),
    ({"backend": "reference", "semantics": "authors", "hops": 2}, F64, False),
    ({"backend": "reference", "semantics": "pyg", "dropout": 0.3, "max_neighbours": 2}, F32, False),
    ({"backend": "reference", "soft_edges": False, "aggregate": "none"}, BF16, False),
]
NEAR = {F32: 1e-5, F64: 1e-12, BF16: 3e-2}


def prepared(options, dtype):
    torch.manual_seed(0)
    layer = ASAPooling(4, **options).to(dtype)
    x = torch.randn(7, 4, dtype=dtype)
    weight = torch.rand(EDGES.size(1), dtype=dtype) + 0.5
    return layer, x, weight


def under(autocast):
    return torch.autocast("cpu", dtype=BF16) if autocast else contextlib.nullcontext()


def assert_same(got, expected, near):
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g, e, rtol=near, atol=near)


def gradients(call, layer, x, weight, autocast):
    """Outputs, and gradients with respect to x, the edge weights and all parameters."""
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    layer.zero_grad()
    torch.manual_seed(1)  # dropout
    with under(autocast):
        out = call(x, EDGES, weight, BATCH)
    (out.x.double().square().sum() + out.edge_weight.double().square().sum()).backward()
    grads = [x.grad, weight.grad, *(p.grad for p in layer.parameters())]
    return out, [g for g in grads if g is not None]


@pytest.mark.parametrize(("options", "dtype", "autocast"), TABLE, ids=str)
def test_compiled_in_training_as_one_graph(options, dtype, autocast):
    layer, x, weight = prepared(options, dtype)
    expected = gradients(layer, layer, x, weight, autocast)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    got = gradients(compiled, layer, x, weight, autocast)
    near = NEAR[BF16 if autocast else dtype]
    assert_same(got[0], expected[0], near)
    assert len(got[1]) == len(expected[1])
    assert_same(got[1], expected[1], 10 * near)


@pytest.mark.parametrize(("options", "dtype", "autocast"), TABLE, ids=str)
def test_exported_with_any_number_of_nodes_and_edges(options, dtype, autocast):
    layer, x, weight = prepared(options, dtype)
    layer.eval()
    N, E = torch.export.Dim("N", min=2), torch.export.Dim("E", min=2)
    with under(autocast), torch.no_grad():
        shapes = ({0: N}, {1: E}, {0: E}, {0: N})
        program = torch.export.export(layer, (x, EDGES, weight, BATCH), dynamic_shapes=shapes).module()
        near = NEAR[BF16 if autocast else dtype]
        assert_same(program(x, EDGES, weight, BATCH), layer(x, EDGES, weight, BATCH), near)
        more = (torch.cat([x, x]), torch.cat([EDGES, EDGES + 7], 1), weight.repeat(2), torch.cat([BATCH, BATCH + 2]))
        assert_same(program(*more), layer(*more), near)


def test_every_value_of_every_option_is_in_the_table():
    seen = {(name, value) for options, _, _ in TABLE for name, value in options.items()}
    for name, values in {
        "semantics": ("authors", "pyg"), "attention": ("t2t", "s2t"), "master": ("mean",),
        "fitness": ("gcn", "basic-leconv"), "aggregate": ("cluster", "none"), "soft_edges": (False,),
        "backend": ("reference",), "hops": (2,), "add_self_loops": (True,), "dropout": (0.3,), "max_neighbours": (1, 2),
    }.items():  # fmt: skip
        assert {(name, value) for value in values} <= seen
    assert {dtype for _, dtype, _ in TABLE} == {F32, F64, BF16}


@pytest.mark.slow
def test_inductor_compiles_a_training_step_with_dropout():
    layer, x, weight = prepared({"dropout": 0.3, "max_neighbours": 2}, F32)
    expected = gradients(layer, layer, x, weight, False)
    torch._dynamo.reset()
    with inductor.patch(fallback_random=True):  # the random numbers of eager mode
        got = gradients(torch.compile(layer, fullgraph=True), layer, x, weight, False)
    assert_same(got[0], expected[0], 1e-5)
    assert_same(got[1], expected[1], 1e-4)
