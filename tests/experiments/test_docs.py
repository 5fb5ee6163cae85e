"""docs/reproduce.md: its plan can be carried out, its code runs, and it names every table."""

import re
from dataclasses import replace
from pathlib import Path

from asapool.experiments.execute import execute
from asapool.experiments.plan import load_graphs, load_plan
from asapool.experiments.reproducing import names_of
from asapool.experiments.store import Store
from asapool.experiments.tables import make_table
from tests.experiments.small import Here

PAGE = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text()


def test_the_plan_for_a_table_of_molecules(tmp_path):
    (tmp_path / "mine.toml").write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    molecules = [("C" * n + tail, "no" if tail == "O" else "yes") for n in range(1, 9) for tail in ("O", "N(=O)=O")]
    rows = "".join(f"{smiles},{word}\n" for smiles, word in [*molecules, ("not a molecule", "no")])
    (tmp_path / "molecules.csv").write_text(f"SMILES,mutagenic\n{rows}")
    whole = load_plan(tmp_path / "mine.toml")
    rates = {f"width {h}, rate {lr}": (lr, 30) for h in (16, 32, 64) for lr in (0.01, 0.001)}
    assert {cell.row: (cell.train.lr, cell.train.epochs) for cell in whole.cells} == {
        "asap": (0.01, 30), "asap, slow": (0.001, 60), "no pooling": (0.1, 30), **rates,
    }  # fmt: skip
    rows = ["asap", "no pooling", "width 16, rate 0.001"]
    plan = load_plan(tmp_path / "mine.toml", epochs=1, folds=4, seeds=1)
    plan = replace(plan, cells=tuple(cell for cell in plan.cells if cell.row in rows))
    graphs = load_graphs([plan])
    assert len(graphs["mutagens"]) == 16
    with Store.open(tmp_path / "out") as store:
        records = execute(plan, graphs, store, Here())
        table = make_table(plan, store.records(), graphs)
    assert all(record.finished for record in records)
    assert [cell.folds for cell in table.cells] == [4, 4, 4]


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    exec(compile(block, "docs/reproduce.md", "exec"), {"__name__": "__main__"})
    assert "| absent |" in capsys.readouterr().out


def test_every_table_is_named():
    assert all(f"`{name}`" in PAGE for name in names_of("all"))


def test_the_data_sets_of_its_commands_are_in_their_plans():
    for name, datasets in re.findall(r"asapool reproduce (\S+) --datasets ([^\s`]+)", PAGE):
        assert load_plan(name, datasets=datasets.split(",")).columns
