"""The examples run, and show what they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*words):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)


def test_where_torch_geometric_departs():
    done = run(EXAMPLES / "peers.py", "weights", "gradient", "ratio", "bf16", "query")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["weights"].endswith("PyG None, asapool 4 numbers")
    assert "PyG fails" in lines["gradient"]
    assert lines["gradient"].endswith("asapool works")
    assert lines["ratio"].endswith("PyG keeps 1, asapool 4")
    assert lines["bf16"].endswith("asapool works")
    assert "move by 0 (σ inside" in lines["query"]


def test_an_unknown_show_gets_one_sentence():
    done = run(EXAMPLES / "peers.py", "nothing")
    assert done.returncode == 2
    assert "'nothing' is not one of sign" in done.stderr
