"""nci-alerts: real molecules, their alerts, and the cache."""

import os

import numpy as np
import pytest

from asapool.data import alerts, load


@pytest.fixture(scope="module")
def molecules():
    return alerts.make_alerts()


def test_the_set(molecules):
    assert (len(molecules), molecules.class_names) == (4991, ("clean", "alert"))
    assert np.array_equal(
        molecules.y == 1, np.bincount(np.repeat(np.arange(len(molecules)), np.diff(molecules.ptr)), molecules.truth) > 0
    )


def test_the_atoms_of_an_alert_are_those_that_match(molecules):
    # NSC 3: both nitro groups (the last six atoms) are an alert; the ring, its chlorine and its hydroxyl are not
    i = molecules.ids.index("NSC 3")
    assert molecules.source_text[i] == "OC1=C(Cl)C=C(C=C1[N+]([O-])=O)[N+]([O-])=O"
    assert molecules.truth[molecules.ptr[i] : molecules.ptr[i + 1]].tolist() == [0] * 8 + [1] * 6


def test_the_cache(molecules, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(alerts, "make_alerts", lambda: calls.append(1) or molecules)
    assert load("nci-alerts").fingerprint == load("nci-alerts").fingerprint == molecules.fingerprint
    assert len(calls) == 1
    [kept] = (tmp_path / "cache").iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])  # damaged: made again
    assert load("nci-alerts").fingerprint == molecules.fingerprint
    assert len(calls) == 2


def test_a_cache_that_cannot_be_written_is_ignored(molecules, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(alerts, "make_alerts", lambda: molecules)
    assert len(load("nci-alerts")) == 4991
    assert os.listdir(tmp_path) == ["file"]


def test_its_recipe_reads_molecules_from_a_table(molecules, tmp_path):
    (tmp_path / "new.csv").write_text("name,smiles\nnitro,C[N+](=O)[O-]\n")
    new = load(tmp_path / "new.csv", recipe=molecules.recipe)
    assert new.feature_names == molecules.feature_names
    assert new.class_names == molecules.class_names
