"""The examples and the code of docs/training.md run as they stand."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_plain_torch_learns(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "plain_torch.py"))
    assert example["main"](epochs=10) > 0.9


def test_the_demo_tells_three_scores_and_leaves_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    demo["main"].__globals__["EPOCHS"] = 1
    demo["main"]()
    demo["main"]()  # again: the folder is there already
    out = capsys.readouterr().out
    assert out.count("majority class") == 2
    assert "mlp" in out
    assert (tmp_path / "runs/demo/model.safetensors").exists()


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "training.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/training.md", "exec"), {})
