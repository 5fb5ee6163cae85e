"""The page of a search: the line of the best trial is that of the trial it names."""

import json
import re

from asapool.reports.tuning_page import tuning_page


def test_among_equal_trials_the_one_that_is_named_best_is_drawn_as_best(tmp_path):
    space = {"model.hidden": [16, 32], "train.lr": [0.001, 0.01]}
    chosen = [{}, {"model.hidden": 16, "train.lr": 0.001}, {"model.hidden": 32, "train.lr": 0.001}]
    trials = [
        {"number": k, "chosen": c, "validation": 0.5 + 0.1 * (k > 0), "test": 0.5, "epochs": 2, "seconds": 1.0,
         "pruned": False, "failure": None}
        for k, c in enumerate(chosen)
    ]  # fmt: skip
    search = {
        "trials": trials, "metric": "accuracy", "greater": True, "best": 1, "data": "toy", "sentence": "No better.",
    }  # fmt: skip
    (tmp_path / "search.json").write_text(json.dumps(search))
    (tmp_path / "tune.json").write_text(json.dumps({"base": {"model": {}, "train": {}}, "space": space}))
    page = tuning_page(tmp_path)
    highlighted = re.findall(r'<path d="M40\.0 ([\d.]+)[^"]*" fill="none" stroke="var\(--plus\)"', page)
    assert highlighted == ["240.0"]  # hidden 16 is the bottom of its axis
