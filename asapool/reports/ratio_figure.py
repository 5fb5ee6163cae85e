"""The paper's figure: accuracy against the sampling ratio k, on the page and as an SVG file of its own."""

from __future__ import annotations

import re

from asapool.experiments.tables import Table
from asapool.reports.charts import HEIGHT, WIDTH, Series, line_chart
from asapool.reports.page import text

NAME = "figure-ratio"
LINE = 20  # height of a line of the legend in the file
LIGHT = {
    "--card": "#fff", "--ink": "#1f2430", "--soft": "#565e6c", "--pale": "#8a919e", "--line": "#dfe3e8",
    "--accent": "#0a64a4", "--plus": "#d55e00", "--third": "#009e73", "--fourth": "#a8568a", "--bad": "#b3390b",
}  # fmt: skip
DARK = {
    "--card": "#1a1e26", "--ink": "#e8ebf0", "--soft": "#a9b1bf", "--pale": "#828b9a", "--line": "#303744",
    "--accent": "#6bb8f0", "--plus": "#ff8a3c", "--third": "#35c69b", "--fourth": "#e39ac8", "--bad": "#ff9068",
}  # fmt: skip


def ratio_series(table: Table) -> list[Series]:
    """A line per data set with its deviation as a band, and the paper's number where it prints one."""
    lines, theirs = [], []
    for column in table.columns:
        cells = [c for c in table.cells if c.column == column and c.mean is not None and _ratio(c.settings) is not None]
        if not cells:
            continue
        seeds = all(cell.over_seeds is not None for cell in cells)
        spread = [(cell.over_seeds if seeds else cell.over_folds) or 0.0 for cell in cells]
        x, y = [_ratio(cell.settings) or 0.0 for cell in cells], [cell.mean or 0.0 for cell in cells]
        lines.append(Series(f"{column}, ± over {'seeds' if seeds else 'folds'}", x, y, dots=True, band=spread))
        for cell in cells:
            told, k = cell.paper, _ratio(cell.settings)
            if told is not None and not told.other and k is not None:
                at, name = [k - 0.02, k + 0.02], f"{column}, the paper at k = {k:g}: {told}"
                theirs.append(Series(name, at, [told.mean] * 2, band=[told.deviation] * 2))
    return lines + theirs


def ratio_chart(table: Table) -> str:
    """The figure for the page."""
    series = ratio_series(table)
    if not series:
        return ""
    label = f"{table.metric} accuracy against the sampling ratio"
    return line_chart(series, label, "sampling ratio k", f"{table.metric} accuracy, %", (0.05, 0.95))


def ratio_file(table: Table) -> str:
    """The figure as an SVG file, light or dark as the reader's screen is; empty where nothing is measured."""
    chart = ratio_chart(table)
    if not chart:
        return ""
    inside = chart[chart.index(">") + 1 : chart.index("</svg>")]
    keys = re.findall(r"border-color:([^;]+);border-top-style:(\w+)", chart)
    height = HEIGHT + LINE * len(keys) + 8
    for k, ((colour, kind), series) in enumerate(zip(keys, ratio_series(table), strict=True)):
        y = HEIGHT + LINE * k + 10
        dash = ' stroke-dasharray="5 4"' if kind == "dashed" else ""
        inside += f'<line x1="58" x2="78" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>'
        inside += f'<text x="86" y="{y + 4}">{text(series.name)}</text>'
    title = text(f"{table.title}: {table.metric} accuracy")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{2 * WIDTH}" role="img" '
        f'aria-label="{title}"><title>{title}</title><style>svg {{ {_css(LIGHT)} }} '
        f"@media (prefers-color-scheme: dark) {{ svg {{ {_css(DARK)} }} }} "
        "text { fill: var(--soft); font: 12px system-ui, sans-serif; } .axis { stroke: var(--line); } "
        f'.frame {{ stroke: var(--pale); }}</style><rect width="{WIDTH}" height="{height}" fill="var(--card)"/>'
        f"{inside}</svg>\n"
    )


def _ratio(settings: dict[str, object]) -> float | None:
    model = settings.get("model")
    ratio = model.get("ratio") if isinstance(model, dict) else None
    return float(ratio) if isinstance(ratio, float) else None


def _css(colours: dict[str, str]) -> str:
    return " ".join(f"{name}: {value};" for name, value in colours.items())
