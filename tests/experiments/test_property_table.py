"""The table of properties is measured: it agrees with the paper, and a layer that lost a property loses its tick."""

import torch

from asapool.experiments import paper
from asapool.experiments.paper_tables import layer_of, measure, table1
from asapool.models import ModelConfig
from asapool.nn import ASAPooling

SPARSE, AGGREGATION, EDGES, VARIABLE = paper.PROPERTIES


def ticks(make):
    return {name for name, (holds, _) in measure(make).items() if holds}


def test_the_measured_table_is_the_paper_s():
    table = table1()
    for method, properties in paper.TICKS.items():
        assert {name for name, result in table.findings[method].items() if result.holds} == set(properties)
    assert table.agrees
    assert "| Sparse | – | ✓ | ✓ | ✓ |" in table.to_markdown()
    assert table.to_csv().count("\n") == 17
    evidence = table.to_dict()["findings"]["diffpool"][VARIABLE]["evidence"]
    assert evidence == "64, 64, 64 clusters for 128, 256, 512 nodes"


def test_the_same_seed_gives_the_same_bytes_and_leaves_the_global_rng_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    assert table1().to_csv() == table1().to_csv()
    assert torch.equal(before, torch.random.get_rng_state())


def test_asap_without_one_part_loses_that_tick():
    every = set(paper.PROPERTIES)
    # under the authors' semantics no gradient reaches S through the edges, yet their weights follow the features
    assert ticks(layer_of(ModelConfig(hidden=4, semantics="authors"))) == every
    assert ticks(layer_of(ModelConfig(hidden=4, soft_edges=False))) == every - {EDGES}
    assert ticks(layer_of(ModelConfig(hidden=4, aggregate="none"))) == every - {AGGREGATION}
    assert ticks(layer_of(ModelConfig(hidden=4, aggregate="cluster"))) == every
    assert ticks(layer_of(ModelConfig(hidden=4, ratio=5))) == every - {VARIABLE}


class Wasteful(ASAPooling):
    """ASAP that goes through a full matrix."""

    def step(self, x, graph, **options):
        step = super().step(x, graph, **options)
        full = step.S.to_dense()  # (N, K)
        object.__setattr__(step, "x", step.x + 0 * (full.exp().T @ x))
        return step


def test_a_full_matrix_is_noticed():
    assert ticks(lambda nodes: Wasteful(4)) == set(paper.PROPERTIES) - {SPARSE}


def test_a_difference_from_the_paper_is_shown():
    table = table1({"asap": ModelConfig(hidden=4, soft_edges=False), "mine": ModelConfig(hidden=4)})
    assert not table.agrees
    assert "| Soft Edge Weights | – (paper: ✓) | ✓ |" in table.to_markdown()
    assert table.findings["mine"][EDGES].paper is None
