"""`asapool embed`: rows of vectors for people and programs."""

import csv
import io

import numpy as np
import pytest

import asapool
from asapool.errors import ConfigError
from tests.cli.commands import call

TINY = ("--epochs", 1, "--hidden", 4, "--val", 0.2, "--test", 0.2, "--no-report")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed")
    rows = "".join(f"m{k},{'C' * (k % 5 + 1)}{'ON'[k % 2]},{'ab'[k % 2]}\n" for k in range(20))
    (path / "m.csv").write_text(f"id,smiles,label\n{rows}")
    call("train", path / "m.csv", *TINY, "--out", path / "run")
    return path


def test_rows_are_those_of_the_library(folder, tmp_path):
    printed = list(csv.reader(io.StringIO(call("embed", folder / "run", folder / "m.csv").stdout)))
    assert [row[0] for row in printed] == ["id", *(f"m{k}" for k in range(20))]
    model = asapool.load_model(folder / "run")
    v = model.embed(folder / "m.csv")
    np.testing.assert_allclose(np.array([row[1:] for row in printed[1:]], np.float32), v, rtol=1e-6, atol=1e-7)
    done = call("embed", folder / "run", folder / "m.csv", "-o", tmp_path / "v.npz", "--chunk", 7)
    assert "numbers per row" in done.stdout
    with np.load(tmp_path / "v.npz") as file:
        np.testing.assert_allclose(file["x"], v, rtol=1e-5, atol=1e-6)
    assert model.embed(["CCO", "CN"]).shape == (2, v.shape[1])


def test_pooled_nodes_of_a_level(folder):
    rows = list(csv.DictReader(io.StringIO(call("embed", folder / "run", "CCCCO", "--level", 1).stdout)))
    assert list(rows[0])[:2] == ["id", "node"]
    assert len(rows) == 3  # ⌈0.5 · 5⌉
    assert asapool.load_model(folder / "run").embed("CCCCO", level=1).shape == (3, 4)


def test_another_ending_is_refused_before_any_work(tmp_path):
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.parquet, \.npz or \.csv"):
        call("embed", "no-model", "no-source", "-o", tmp_path / "v.txt")
