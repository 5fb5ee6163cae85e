"""What the tests of pages share: one small trained run, its hierarchies."""

import pytest

from asapool.insight import explain
from asapool.models import checkpoint
from asapool.training import resolve, start


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A finished run on a few hundred molecules."""
    settings, graphs = resolve(
        {
            "data": {"source": "nci-alerts"}, "split": {"kind": "stratified", "val": 0.05, "test": 0.05, "seed": 0},
            "model": {"method": "asap", "hidden": 16}, "train": {"epochs": 2, "seed": 0},
        }
    )  # fmt: skip
    few = graphs.subset(range(500))
    folder = tmp_path_factory.mktemp("runs") / "run"
    start(settings, few, folder)
    return folder, few


@pytest.fixture(scope="session")
def hierarchies(run_folder):
    folder, graphs = run_folder
    trained = checkpoint.load(folder / "model.safetensors")
    return [explain(trained, graphs, i) for i in (5, 40)]
