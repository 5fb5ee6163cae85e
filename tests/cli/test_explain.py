"""`asapool explain`: the words it takes, the page it writes, the numbers it prints."""

import json

import pytest

import asapool
from asapool.data import load
from asapool.data.targets import Target
from asapool.errors import ConfigError, DataError
from asapool.insight.importance import KINDS
from asapool.models import ModelConfig, build, checkpoint
from tests.cli.commands import call

SOURCE = "synthetic:motifs?graphs=6&nodes=9"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    graphs, path = load(SOURCE), tmp_path_factory.mktemp("model") / "model.safetensors"
    made = build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0)
    checkpoint.save(path, made, classes=graphs.class_names, recipe=graphs.recipe)
    return path


def test_it_writes_one_page_for_the_graphs_named(model, tmp_path):
    output = call("explain", model, SOURCE, "--graph", 3, "--graph", 1, "-o", tmp_path / "page.html")
    assert output.exit_code == 0
    assert output.stdout.splitlines()[-1].split() == ["out", str(tmp_path / "page.html")]
    assert "nodes 14 → 7 → 4 → 2" in output.stdout
    page = (tmp_path / "page.html").read_text()
    assert page.index('id="g0-title">Graph 3<') < page.index('id="g1-title">Graph 1<')
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_json_is_what_the_library_says(model, tmp_path):
    output = call("explain", model, SOURCE, "--graph", 2, "-o", tmp_path / "p.html", "--target", "ring", "--json")
    (reported,) = json.loads(output.stdout)
    assert reported == json.loads(asapool.explain(model, load(SOURCE), 2, target="ring").to_json())


def test_kinds_of_importance_can_be_chosen(model, tmp_path):
    output = call("explain", model, SOURCE, "-o", tmp_path / "p.html", "--importance", "gradient", "--json")
    assert list(json.loads(output.stdout)[0]["importance"]) == ["gradient"]


def test_it_takes_what_the_column_graph_says_and_tells_what_was_skipped(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\nC,0\nC(,1\nCC,1\nCCC,0\n")
    graphs = load(tmp_path / "m.csv", skip_invalid=True)
    (tmp_path / "run").mkdir()
    made = build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0)
    checkpoint.save(tmp_path / "run/model.safetensors", made, classes=graphs.class_names, recipe=graphs.recipe)
    words = ("explain", tmp_path / "run", tmp_path / "m.csv", "--skip-invalid", "-o", tmp_path / "p.html")
    rows = call("predict", *words[1:4]).stdout.splitlines()[1:]
    for row, text in zip(rows, ("C", "CC", "CCC"), strict=True):
        output = call(*words, "--graph", row.split(",")[0], "--json")
        assert json.loads(output.stdout)[0]["text"] == text
        assert "skipped line 3: 'C(' is not SMILES" in output.stderr
    output = call(*words, "--graph", 3, "--graph", "id=5")
    assert [line.split("  ")[0] for line in output.stdout.splitlines()] == ["graph 3", "out"]


def test_mistakes_are_refused_in_a_sentence(model, tmp_path):
    for args, error, says in (
        (("--graph", "x9"), DataError, "has no graph 'x9'"),
        (("--importance", "shap"), ConfigError, "importance must be one of"),
        (("--target", "barn"), ConfigError, "--class must be one of 'house', 'ring'"),
    ):
        with pytest.raises(error, match=says):
            call("explain", model, SOURCE, "-o", tmp_path / "p.html", *args)
    assert not (tmp_path / "p.html").exists()


def test_the_ending_of_the_file_decides_what_it_is(model, tmp_path):
    begins = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg", "json": b"[{", "html": b"<!doctype"}
    for ending, first in begins.items():
        assert call("explain", model, SOURCE, "-o", tmp_path / f"a.{ending}").exit_code == 0
        assert (tmp_path / f"a.{ending}").read_bytes().startswith(first)
    one = asapool.explain(model, SOURCE, "0")
    assert (tmp_path / "a.svg").read_text() == one.to_svg(colour="substitution", width=960)
    call("explain", model, SOURCE, "-o", tmp_path / "b.svg", "--level", 2)
    assert (tmp_path / "b.svg").read_text() == one.to_svg(2, width=960)
    with pytest.raises(ConfigError, match=r"x\.jpg: an explanation ends in one of \.html, \.json, \.svg, \.png, \.pdf"):
        call("explain", model, SOURCE, "-o", tmp_path / "x.jpg")
    with pytest.raises(ConfigError, match="a picture shows one graph, got 2"):
        call("explain", model, SOURCE, "--graph", 0, "--graph", 1, "-o", tmp_path / "x.png")
    assert not list(tmp_path.glob("x.*"))


def test_python_takes_a_run_folder_and_a_source_as_the_command_does(model):
    by_folder = asapool.explain(model.parent, SOURCE, "graph=3")
    assert by_folder.to_json() == asapool.explain(model, load(SOURCE), 3).to_json()


def test_check_measures_every_kind_of_importance(model, tmp_path):
    out = tmp_path / "check.html"
    done = call("explain", model, SOURCE, "--check", "--sample", 3, "--with", model, "-o", out)
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "quantity", "attention", "gradient", "occlusion", "neighbourhood", "substitution", "random", "graphs", "out"
    ]  # fmt: skip
    assert "stability 1.000" in done.stdout
    assert "<svg" in out.read_text()
    rows = json.loads(call("explain", model, SOURCE, "--check", "--graph", 2, "-o", out, "--json").stdout)["rows"]
    assert [row["kind"] for row in rows] == [*KINDS, "random"]
    with pytest.raises(ConfigError, match=r"x\.png: a check ends in one of"):
        call("explain", model, SOURCE, "--check", "-o", tmp_path / "x.png")


def test_two_models_or_two_graphs_side_by_side(model, tmp_path):
    out = tmp_path / "two.html"
    assert call("explain", model, SOURCE, "--graph", 1, "--with", model, "-o", out).exit_code == 0
    page = out.read_text()
    assert page.count('class="card explorer"') == 2
    assert page.count('<div class="beside">') == 1
    assert f"Graph 1 · {model}" in page
    call("explain", model, SOURCE, "--graph", 0, "--graph", 1, "--graph", 2, "--side-by-side", "-o", out)
    assert out.read_text().count('<div class="beside">') == 1  # the third stands alone
    with pytest.raises(ConfigError, match="--with shows one other model"):
        call("explain", model, SOURCE, "--with", model, "-o", tmp_path / "x.json")


def test_against_writes_a_page_and_refuses_its_own_class(model, tmp_path):
    answer = asapool.explain(model, SOURCE, "2", importance=[]).answer
    other = "ring" if answer == "house" else "house"
    words = ("explain", model, SOURCE, "--graph", 2, "--against", other, "-o")
    assert call(*words, tmp_path / "c.html").exit_code == 0
    assert "A small change" in (tmp_path / "c.html").read_text()
    (plain,) = json.loads(call(*words, tmp_path / "c.json", "--json").stdout)
    assert plain["against"] == other
    for more, says in ((("--class", other), "its own class"), (("--check",), "different pages")):
        with pytest.raises(ConfigError, match=says):
            call(*words, tmp_path / "x.html", *more)
    assert not (tmp_path / "x.html").exists()


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """A model of two measured values."""
    graphs, path = load(SOURCE), tmp_path_factory.mktemp("values") / "model.safetensors"
    made = build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0)
    made.target = Target(kind="regression", names=("logS [mol/l]", "logP"), mean=(1.0, 2.0), scale=(3.0, 4.0))
    recipe = {name: value for name, value in graphs.recipe.items() if name != "classes"}
    checkpoint.save(path, made, target=made.target, recipe=recipe)
    return path


def test_check_of_one_value_of_several(values, tmp_path):
    done = call("explain", values, SOURCE, "--check", "--sample", 3, "--class", "logP", "-o", tmp_path / "c.html")
    assert done.exit_code == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["quantity"].endswith("change of logP")
    assert set(lines) >= {*KINDS, "random"}
    assert "sparsity" not in lines["random"]
    checked = json.loads(call("explain", values, SOURCE, "--check", "-o", tmp_path / "c.csv", "--json").stdout)
    assert (checked["target"], checked["unit"]) == ("logS [mol/l]", "mol/l")


def test_values_cannot_be_compared_with_a_class(values, tmp_path):
    for other in ("logP", "ring"):
        with pytest.raises(ConfigError, match=r"measured values .* nodes raise the value and which lower it"):
            call("explain", values, SOURCE, "--against", other, "-o", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
