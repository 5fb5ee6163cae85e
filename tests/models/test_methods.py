"""The registry: one list that everything follows, and methods of other packages in it."""

import dataclasses
import os
import subprocess
import sys

import pytest

from asapool.errors import ConfigError
from asapool.models import Method, ModelConfig, build, method, method_names, register, register_method
from asapool.models import methods as registry
from asapool.models.methods import methods


@pytest.fixture
def table(monkeypatch):
    """The registry, restored afterwards."""
    monkeypatch.setattr(registry, "_TABLE", dict(registry._TABLE))
    return registry


def test_every_method_is_listed_once_with_its_kind():
    kinds = {kind: method_names(kind, builtin=True) for kind in ("hierarchical", "global", "sanity")}
    assert kinds["hierarchical"][:5] == ("asap+", "asap", "topk", "sagpool", "diffpool")
    assert kinds["global"][:3] == ("set2set", "global-attention", "sortpool")
    assert kinds["sanity"][:3] == ("none", "none+", "mlp")
    assert method_names() == tuple(dict.fromkeys(method_names()))
    assert all(entry.sentence.endswith(".") and entry.paper for entry in methods())


@pytest.mark.parametrize("name", method_names(builtin=True))
def test_every_entry_builds_the_model_it_names(name):
    model = build(ModelConfig(method=name, hidden=4), 3, 2, seed=0, typical_nodes=6)
    assert model.config.method == name
    assert (method(name).trainer == "direct") == hasattr(model, "fit_graphs")


def entry(**changes):
    return Method(**{"name": "mine", "kind": "global", "sentence": "Mine.", "paper": "Us", "pool": "a:b"} | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "a,b"}, "a name without commas"),
        ({"kind": "local"}, "kind of the method mine must be one of 'hierarchical'"),
        ({"trainer": "magic"}, "trainer of the method mine must be one of 'gradient', 'direct'"),
        ({"build": "a:b"}, "needs either pool or build"),
        ({"pool": None}, "needs either pool or build"),
        ({"kind": "baseline"}, "needs build and not pool"),
    ],
)
def test_an_entry_that_cannot_work_is_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        entry(**changes)


def test_a_taken_name_is_refused_and_the_same_entry_is_not(table):
    with pytest.raises(ConfigError, match="there is already a method 'asap'"):
        register(entry(name="asap"))
    register(entry())
    register(entry())
    with pytest.raises(ConfigError, match="there is already a method 'mine'"):
        register(entry(pool="a:c"))


def test_a_registered_pooling_is_built_and_an_unknown_one_lists_it(table):
    from asapool.models.pools import topk

    @register_method("mine", kind="hierarchical", sentence="Keeps what TopK keeps.")
    def pool(config, level):
        return topk(config, dataclasses.replace(level))

    model = build(ModelConfig(method="mine", hidden=4), 3, 2, seed=0)
    twin = build(ModelConfig(method="topk", hidden=4), 3, 2, seed=0)
    assert model.state_dict().keys() == twin.state_dict().keys()
    with pytest.raises(ConfigError, match=r"model.method must be one of 'asap.*'mine', got 'yours'"):
        ModelConfig(method="yours")
    for name in (3, None, ["asap"], {}):
        with pytest.raises(ConfigError, match=r"model\.method must be one of"):
            ModelConfig(method=name)


PACKAGE = '''
import torch
from torch import nn
from asapool.models import DirectModel, Method, register_method
from asapool.nn.baselines import keep_highest


class DegreePool(nn.Module):
    """Keep the nodes with the most neighbours, scaled by a learned number."""

    def __init__(self, channels, ratio, backend):
        super().__init__()
        self.in_channels, self.ratio, self.backend = channels, ratio, backend
        self.scale = nn.Parameter(torch.ones(()))
        self.dropout = nn.Dropout(0.1)

    def scores(self, x, graph):
        ones = torch.ones_like(graph.weight)
        degree = x.new_zeros(len(x)).index_add(0, graph.pattern.row, ones)
        return self.scale * degree + 0 * x.sum(1)

    def step(self, x, graph, *, edges=True):
        return keep_highest(self, self.dropout(x), graph, edges)


@register_method("degree", kind="hierarchical", sentence="Keeps the nodes of highest degree.", paper="A test")
def degree(config, level):
    return DegreePool(config.hidden, config.ratios[level.index], config.backend)


class Size(DirectModel):
    """The mean number of nodes per class; predicts the class with the nearest mean."""

    def fit_graphs(self, graphs, train, val, seed, weight=None):
        import numpy as np

        size, y = np.diff(graphs.ptr)[train], graphs.y[train]
        self.set_arrays(mean=np.array([size[y == c].mean() for c in range(self.num_classes)]))

    def predict_graphs(self, graphs, indices):
        import numpy as np

        gap = -np.abs(np.diff(graphs.ptr)[indices, None] - self.array("mean"))
        p = np.exp(gap - gap.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


SIZE = Method(name="size", kind="baseline", sentence="Counts nodes.", paper="A test", build=Size, trainer="direct",
              no_levels="This model counts nodes")
'''

POINTS = """[asapool.methods]
degree = degree_pooling:degree
size = degree_pooling:SIZE
broken = degree_pooling:nothing
"""


@pytest.fixture
def elsewhere(tmp_path):
    """A small package with two methods, as pip would install it, and a runner in that environment."""
    site = tmp_path / "site"
    info = site / "degree_pooling-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "degree_pooling.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: degree-pooling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    paths = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", os.getcwd())])

    def run(*words):
        env = os.environ | {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
        return subprocess.run(
            [sys.executable, *map(str, words)], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=300
        )

    return run


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from asapool.cli.main import app

def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.output)
    return done.stdout

if __name__ == "__main__":
    listed = json.loads(call("methods", "--json"))
    assert {m["name"] for m in listed if not m["builtin"]} == {"degree", "size"}, listed
    small = ["synthetic:cycles?graphs=30", "--epochs", 2, "--no-report", "--hidden", 8]
    for name in ("degree", "size"):
        call("train", *small, "--method", name, "--out", f"run-{name}")
        call("predict", f"run-{name}", "synthetic:cycles?graphs=4", "-o", f"{name}.csv")
    two = ["--methods", "degree,size", "--folds", 3, "--engine", "local", "--json", "--out", "all"]
    table = json.loads(call("compare", *small, *two))
    assert set(table["rows"]) == {"degree", "size"}, table
"""


def test_another_package_trains_cross_validates_compares_saves_and_loads(elsewhere, tmp_path):
    (tmp_path / "commands.py").write_text(COMMANDS)
    done = elsewhere("commands.py")
    assert done.returncode == 0, done.stderr
    assert all(len((tmp_path / f"{name}.csv").read_text().splitlines()) == 5 for name in ("degree", "size"))


def test_a_broken_entry_point_is_left_out_with_a_warning(elsewhere):
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    from asapool.models import method_names\n"
        "    assert 'degree' in method_names() and 'broken' not in method_names()\n"
        "print([str(w.message) for w in seen if 'broken' in str(w.message)])"
    )
    done = elsewhere("-c", code)
    assert "the method 'broken' of the entry point degree_pooling:nothing is left out: AttributeError" in done.stdout


def test_the_list_of_methods_loads_no_torch():
    code = "import sys; from asapool.models.methods import methods; methods(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
