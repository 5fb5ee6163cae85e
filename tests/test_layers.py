"""A module imports only from layers with a smaller number (or from its own folder), so no arrow points up."""

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
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
    """asapool/nn/convolutions.py -> 'nn'; asapool/errors.py -> 'errors'."""
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


def runtime_imports(tree):
    """The modules of asapool that a module imports at any time, also inside of functions; types alone do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "asapool":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "asapool")
        else:
            yield from runtime_imports(node)


def cycle(sources):
    """Modules that import each other in a circle, by name → source; None where there are none."""
    graph = {}
    for name, source in sources.items():
        wanted = runtime_imports(ast.parse(source))
        graph[name] = {w if w in sources else w.rpartition(".")[0] for w in wanted} & sources.keys() - {name}
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_cycle_is_hidden_by_an_import_inside_a_function():
    paths = {p: ".".join(("asapool", *p.relative_to(ROOT).with_suffix("").parts)) for p in ROOT.rglob("*.py")}
    assert cycle({name.removesuffix(".__init__"): path.read_text() for path, name in paths.items()}) is None


def test_a_hidden_cycle_is_noticed():
    there = "def f():\n    from asapool.b import g"
    assert cycle({"asapool.a": there, "asapool.b": "from asapool.a import f"}) is not None
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from asapool.a import f"
    assert cycle({"asapool.a": there, "asapool.b": typed}) is None


NAMED_TUPLE = {"_fields", "_replace", "_asdict", "_make"}
NOT_OURS = {  # members of libraries that offer no public way
    "experiments/paper_tables.py": {"_indices", "_values"},  # of a sparse tensor that is not coalesced
    "exporting/formats.py": {"_config"},  # torch.fx: the switches of torch.export
    "kernels/fused/compiled.py": {"_cache", "_impl", "_cache_file"},  # numba's cache of machine code
    "kernels/graph.py": {"_version"},  # how often a tensor was changed in place
    "nn/edge_masks.py": {"_edge_mask", "_apply_sigmoid"},  # what torch_geometric's explainers set
    "training/adam.py": {"_fused_adamw_", "_fused_adam_", "_foreach_add_"},  # torch's fused optimiser
    "training/run.py": {"_BatchNorm"},  # the base class of torch's batch normalisations
    "training/workers.py": {"_exit"},  # os._exit, which is public in spite of its name
}


def private_uses(path, source):
    """Underscore names of other modules that a module imports or reads."""
    tree = ast.parse(source)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    defined |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not (node.module == "asapool.cli" and path.parts[0] == "cli"):
            allowed = NOT_OURS.get(path.as_posix(), set())
            private = (alias.name for alias in node.names if alias.name.startswith("_") and alias.name[1] != "_")
            yield from (name for name in private if name not in allowed)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            own = own or (isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()")
            allowed = defined | NAMED_TUPLE | NOT_OURS.get(path.as_posix(), set())
            if not own and node.attr not in allowed:
                yield ast.unparse(node)


@pytest.mark.parametrize("path", modules(), ids=str)
def test_no_module_uses_anothers_underscore_members(path):
    assert list(private_uses(path, (ROOT / path).read_text())) == []


def test_a_private_member_of_another_module_is_noticed():
    assert list(private_uses(Path("nn/x.py"), "from asapool.kernels.graph import _rows"))
    assert list(private_uses(Path("nn/x.py"), "import asapool.kernels.graph as g\ng._rows()"))
    assert not list(private_uses(Path("nn/x.py"), "def _rows(): ...\n_rows()\nself._x"))


@pytest.mark.parametrize("path", modules(), ids=str)
def test_no_module_is_longer_than_350_lines(path):
    assert len((ROOT / path).read_text().splitlines()) <= 350


def test_a_class_has_a_name_of_its_own():
    names = Counter(
        node.name
        for path in modules()
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
