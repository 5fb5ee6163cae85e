"""CONTRIBUTING's recipe for a pooling method, followed literally: its two blocks of code make a method that trains."""

import sys
from pathlib import Path
from types import ModuleType

from asapool.models import methods
from tests.cli.commands import call

BLOCKS = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text().split("```python\n")[1:]


def test_the_recipe_for_a_pooling_method_works(tmp_path, monkeypatch):
    layer, entry = (block.split("```")[0] for block in BLOCKS)
    module = ModuleType("asapool.models.degree_pool")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(layer, "CONTRIBUTING.md", "exec"), module.__dict__)
    made = eval(entry, {"Method": methods.Method})
    monkeypatch.setattr(methods, "_TABLE", {**methods._TABLE, made.name: made})
    assert "degreepool" in call("methods").stdout
    words = ("--methods", "degreepool,mlp", "--folds", 3, "--epochs", 1, "--hidden", 4, "--no-report")
    done = call("compare", "synthetic:cycles?graphs=12&nodes=6", *words, "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "degreepool" in done.stdout
