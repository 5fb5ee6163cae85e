"""A module imports only from layers with a smaller number (or from its own folder), so no arrow points up."""

import ast
from pathlib import Path

import pytest

import asapool

ROOT = Path(asapool.__file__).parent
LAYER = {
    "errors": 0, "files": 0, "data": 1, "kernels": 1, "nn": 2, "theory": 2, "models": 3, "training": 4,
    "insight": 5, "estimator": 5, "experiments": 5, "exporting": 5, "reports": 6, "trained": 6,
    "serve": 7, "cli": 8, "__main__": 9,
}  # fmt: skip


def room(parts):
    """asapool/nn/gcn.py -> 'nn'; asapool/errors.py -> 'errors'."""
    return parts[0].removesuffix(".py")


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "asapool":
                yield from (f"asapool.{alias.name}" for alias in node.names)
            else:
                yield node.module


def breaches(path, source):
    here = room(path.parts)
    for name in imported(ast.parse(source)):
        parts = name.split(".")
        ours = parts[0] == "asapool" and len(parts) > 1 and parts[1] in LAYER and parts[1] != here
        if ours and parts[1] != "errors" and LAYER[parts[1]] >= LAYER[here]:
            yield f"{path} (layer {LAYER[here]}) imports {name} (layer {LAYER[parts[1]]})"


def modules():
    return [p.relative_to(ROOT) for p in ROOT.rglob("*.py") if p.name != "__init__.py" or p.parent != ROOT]


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_point_down(path):
    assert list(breaches(path, (ROOT / path).read_text())) == []


def test_an_arrow_that_points_up_is_noticed():
    assert list(breaches(Path("kernels/x.py"), "from asapool.nn import LEConv"))
    assert list(breaches(Path("data/x.py"), "import asapool.kernels"))
    assert not list(
        breaches(Path("nn/x.py"), "from asapool.kernels import coarsen\nfrom asapool.errors import InputError")
    )


def test_every_room_has_a_layer():
    assert {room(p.parts) for p in modules()} <= set(LAYER)
