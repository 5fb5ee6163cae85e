"""Every example of docs/data.md runs, in the order of the page, and prints what the page says."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from asapool.cli import main as cli

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def expected(code):
    """What the comments behind print(...) promise, one line each."""
    result = [line.split("  # ")[1:] for line in code.splitlines() if line.lstrip().startswith("print(")]
    return [text for texts in result for text in texts]


def test_the_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path / "cache"))
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 15
    names = {}
    for language, code in blocks:
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(PAGE), "exec"), names)
            assert out.getvalue().splitlines() == expected(code)
        for line in code.splitlines() if language == "bash" else ():
            words = shlex.split(line)
            assert words[0] == "asapool", line
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as end:
                cli.main()
            assert not end.value.code, line
