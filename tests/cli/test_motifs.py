"""`asapool motifs`: the files it writes, and that names in them cannot run."""

import csv
import json

import pytest

from asapool.data import load
from asapool.errors import ConfigError
from asapool.models import ModelConfig, build, checkpoint
from tests.cli.commands import call

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and a table of molecules whose ids and classes are markup."""
    folder = tmp_path_factory.mktemp("motifs")
    texts = ["Nc1ccccc1", "CNc1ccccc1", "O=[N+]([O-])c1ccccc1", "CC(=O)OC"] * 3
    with (folder / "m.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "smiles", "label"])
        writer.writerows([f"{NASTY}{k}", text, (NASTY, "b")[k % 2]] for k, text in enumerate(texts))
    graphs = load(folder / "m.csv")
    made = build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=0)
    checkpoint.save(folder / "model.safetensors", made, classes=graphs.class_names, recipe=graphs.recipe)
    return folder


def test_the_ending_decides_what_is_written(folder, tmp_path):
    for ending in ("html", "csv", "json"):
        done = call("motifs", folder, folder / "m.csv", "-o", tmp_path / f"a.{ending}", "--min-graphs", 2, "--pages", 2)
        assert done.exit_code == 0
        assert done.stdout.splitlines()[-1].split() == ["out", str(tmp_path / f"a.{ending}")]
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    table = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert [row["name"] for row in table] == [row["name"] for row in rows]
    page = (tmp_path / "a.html").read_text()
    assert "<script>alert" not in page + (tmp_path / "a-graphs.html").read_text()
    assert "a-graphs.html#g0" in page
    with pytest.raises(ConfigError, match=r"x\.png: motifs are written to one of \.html, \.csv, \.json"):
        call("motifs", folder, folder / "m.csv", "-o", tmp_path / "x.png")
    assert not list(tmp_path.glob("x*"))


def test_a_query_and_json(folder, tmp_path):
    words = ("motifs", folder, folder / "m.csv", "-o", tmp_path / "q.html", "--query", "[N+](=O)[O-]", "--json")
    (row,) = json.loads(call(*words).stdout)["rows"]
    assert (row["name"], row["graphs"]) == ("[N+](=O)[O-]", 3)
    assert "What happens without it" in (tmp_path / "q.html").read_text()
