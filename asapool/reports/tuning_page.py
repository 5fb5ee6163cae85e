"""The report of a search: the best settings, its progress, which settings matter, all trials."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from asapool.errors import CheckpointError
from asapool.files import read_json
from asapool.reports.charts import Chart, Line, line_chart
from asapool.reports.page import Fact, TableView, render, text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 300, 40, 16, 60  # of the parallel coordinates plot


def is_search(folder: Path) -> bool:
    """Whether the folder contains a finished search of asapool tune."""
    return (folder / "search.json").is_file()


def tuning_page(folder: Path) -> str:
    """Read search.json and tune.json, and render the page."""
    try:
        search, about = read_json(folder / "search.json"), read_json(folder / "tune.json")
        return _page(folder, search, about)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}: its files are inconsistent ({type(error).__name__}: {error}). Run the command again"
        ) from None


def _page(folder: Path, search: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    trials, metric = search["trials"], search["metric"]
    best = next(t for t in trials if t["number"] == search["best"])
    finished = [t for t in trials if t["validation"] is not None]
    default = about["base"]["model"] | about["base"]["train"]
    heading = f"{search['data']}: tuning"
    rows = [
        [name, _short(value), _short(default.get(name.split(".")[1], "–"))] for name, value in best["chosen"].items()
    ]
    names = list(about["space"])
    return render(
        "tuning.html", heading=heading, title=f"asapool: {heading}", links=[], sentence=search["sentence"],
        about=f"{len(trials)} trials, chosen by validation {metric}",
        glance=[
            Fact("best trial", str(best["number"]), "0 has the default settings"),
            Fact(f"validation {metric}", f"{best['validation']:.4f}"),
            Fact(f"test {metric}", "–" if best["test"] is None else f"{best['test']:.4f}", "never used to choose"),
            Fact("finished", str(len(finished)), f"{sum(t['pruned'] for t in trials)} pruned"),
        ],
        best=TableView(["setting", "best", "default"], rows, classes=""),
        history=_history(finished, metric, search["greater"]), importance=_importance(folder, names),
        parallel=_parallel(finished, about["space"], search["greater"], best["number"]),
        trials=TableView(
            ["trial", f"validation {metric}", "epochs", "seconds", "remark", *names],
            [
                [str(t["number"]), _short(t["validation"]), _short(t["epochs"]), _short(t["seconds"]),
                 "pruned" if t["pruned"] else t["failure"] or "",
                 *(_short(t["chosen"].get(name, "default" if not t["chosen"] else "–")) for name in names)]
                for t in trials
            ],
        ),
    )  # fmt: skip


def _history(finished: Sequence[Mapping[str, Any]], metric: str, greater: bool) -> Chart:
    x, y = [t["number"] for t in finished], [t["validation"] for t in finished]
    pick = max if greater else min
    best = [pick(y[: k + 1]) for k in range(len(y))]
    lines = [Line("best so far", x, best), Line("trial", x, y, points=True)]
    return line_chart(lines, "progress of the search", "trial", f"validation {metric}", whole=True)


def _importance(folder: Path, names: Sequence[str]) -> TableView | None:
    """How much of the variation in scores each setting explains; None if Optuna cannot tell."""
    try:
        import optuna
    except ImportError:
        return None
    path = folder / "trials-0.journal"
    if not path.is_file():
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    study = optuna.load_study(study_name="tune", storage=storage)
    try:
        done = [t for t in study.get_trials(deepcopy=False) if t.params and t.state.name == "COMPLETE"]
        if len(done) < 4:
            return None
        with warnings.catch_warnings():  # Optuna warns about few trials; the page shows how many there were
            warnings.simplefilter("ignore")
            shares = optuna.importance.get_param_importances(
                study, evaluator=optuna.importance.PedAnovaImportanceEvaluator(), params=list(names)
            )
    except (ValueError, RuntimeError):  # too few trials, or all scores equal
        return None
    rows = [
        [
            name,
            Markup('<div class="track wide"><i style="width:{}%"></i></div>').format(round(100 * share)),
            f"{share:.2f}",
        ]
        for name, share in shares.items()
    ]
    return TableView(["setting", "", "share"], rows, classes="")


def _parallel(
    finished: Sequence[Mapping[str, Any]], space: Mapping[str, Sequence[Any]], greater: bool, best: int
) -> Chart:
    """Parallel coordinates: an axis per setting, a line per trial, the best one drawn last."""
    names = list(space)
    gap = (WIDTH - 2 * LEFT) / max(len(names) - 1, 1)
    body = ""
    for k, name in enumerate(names):
        x = LEFT + k * gap
        low, high = space[name][0], space[name][-1]
        body += f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="frame"/>'
        lift = 16 * (k % 2)
        for y, words in (
            (HEIGHT - BOTTOM + 14, _short(low)),
            (TOP - 4, _short(high)),
            (HEIGHT - 24 + lift, name.split(".")[1]),
        ):
            body += f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{text(words)}</text>'
    sign = 1 if greater else -1
    order = sorted((t for t in finished if t["chosen"]), key=lambda t: (sign * t["validation"], -t["number"]))
    for rank, trial in enumerate(order):
        share = (rank + 1) / len(order)
        places = [
            (
                LEFT + k * gap,
                HEIGHT - BOTTOM - _height(trial["chosen"].get(name), space[name]) * (HEIGHT - BOTTOM - TOP),
            )
            for k, name in enumerate(names)
        ]
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        last = trial["number"] == best
        body += (
            f'<path d="{d}" fill="none" stroke="var({"--plus" if last else "--accent"})" '
            f'stroke-width="{2.6 if last else 1.4}" stroke-opacity="{0.15 + 0.85 * share**2:.2f}"/>'
        )
    label = "settings and scores of all trials"
    svg = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><svg class="chart wide" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{body}</svg></div>'
    )
    return Chart(Markup(svg), label)


def _height(value: Any, ends: Sequence[Any]) -> float:
    """Where a value lies between the ends of its axis, from 0 to 1."""
    if value in ends and (len(ends) > 2 or not isinstance(value, (int, float)) or isinstance(value, bool)):
        return list(ends).index(value) / max(len(ends) - 1, 1)
    low, high = ends[0], ends[-1]
    if (
        isinstance(value, (int, float))
        and isinstance(low, (int, float))
        and isinstance(high, (int, float))
        and high > low
    ):
        if low > 0 and high / low > 20:  # ranges this wide are searched on a logarithmic scale
            return math.log(value / low) / math.log(high / low)
        return float((value - low) / (high - low))
    return 0.5


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}"
    return value if isinstance(value, str) else json.dumps(value).replace('"', "").strip("[]")
