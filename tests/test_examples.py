"""The examples run, and show what they say."""

from pathlib import Path

from tests.children import run_python

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(program, *words):
    command = [str(EXAMPLES / program), *words]
    return run_python(f"import runpy, sys; sys.argv = {command}; runpy.run_path(sys.argv[0], run_name='__main__')")


def test_where_torch_geometric_departs():
    done = run("peers.py", "weights", "gradient", "ratio", "bf16", "query")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["weights"].endswith("PyG None, asapool 4 numbers")
    assert "PyG fails" in lines["gradient"]
    assert lines["gradient"].endswith("asapool works")
    assert lines["ratio"].endswith("PyG keeps 1, asapool 4")
    assert lines["bf16"].endswith("asapool works")
    assert "move by 0 (σ inside" in lines["query"]


def test_a_failing_export_prints_one_line():
    done = run("peers.py", "export")
    assert done.stdout.splitlines() == [
        "export    torch.export: PyG fails (GuardOnDataDependentSymNode), asapool works"
    ]
    assert "def forward" not in done.stderr


def test_an_unknown_show_gets_one_sentence():
    done = run("peers.py", "nothing")
    assert done.returncode == 2
    assert "'nothing' is not one of sign" in done.stderr
