"""The names that users may rely on, and that importing them stays light."""

import subprocess
import sys
from importlib import import_module

import pytest

import asapool
import asapool.kernels
import asapool.nn
from tests.children import run_python

HEAVY = ("torch_geometric", "numba", "rdkit", "ray", "matplotlib", "pandas", "networkx", "sklearn")


def test_public_names():
    assert set(asapool.__all__) == {
        "ASAPClassifier", "ASAPRegressor", "ASAPooling", "AsapoolError", "GraphSet", "Hierarchy", "__version__",
        "explain", "keep_memory", "load", "load_model", "motifs", "register_method", "tune",
    }  # fmt: skip
    assert all(getattr(asapool, name) is not None for name in asapool.__all__)
    assert set(asapool.nn.__all__) == {
        "ASAPooling", "Assignment", "BasicLEConv", "DiffPooled", "DiffPooling", "DynamicAttention", "GCN",
        "GIN", "GINE", "GlobalAttentionPool", "Graph", "GraphNorm", "LEConv", "LayerNorm", "Master2Token",
        "NodeNorm", "PoolStep", "Pooled", "PooledWithFeatures", "Readout", "SAGE", "SAGPooling", "Set2SetPool",
        "SortPool", "Source2Token", "Token2Token", "TopKPooling", "explainable", "normalisation",
        "pyg_state_dict",
    }  # fmt: skip


@pytest.mark.parametrize(
    "package", ["data", "estimator", "experiments", "exporting", "files", "insight", "kernels", "models", "nn",
                "reports", "theory", "training"],
)  # fmt: skip
def test_every_name_that_a_package_offers_is_there(package):
    """Many are looked up when first used, so that a wrong module would be noticed by users only."""
    module = import_module(f"asapool.{package}")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_packages_are_there_after_import_asapool_alone():
    code = "import asapool; print(asapool.insight.forecast.__name__, asapool.theory.__name__, hasattr(asapool, 'none'))"
    done = run_python(code)
    assert done.stdout.split() == ["forecast", "asapool.theory", "False"]


def test_imports_are_light():
    """numba, torch_geometric and the rest load where they are first used."""
    code = f"import sys, asapool.nn, asapool.data, asapool.models; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = "import sys, asapool; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_readme_s_example_runs():
    from pathlib import Path

    readme = (Path(asapool.__file__).parents[1] / "README.md").read_text()
    block = readme.split("```python\n")[1].split("```")[0]
    done = run_python(block)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torch.Size([3, 16]) True")
