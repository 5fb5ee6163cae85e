"""Small SVG charts in the page's colours: lines, and dots around a mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from asapool.reports.page import text

WIDTH, HEIGHT = 380, 270  # no wider than a phone, so that text is not scaled down
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 42
COLOURS = ("var(--accent)", "var(--plus)", "var(--third)", "var(--fourth)", "var(--pale)", "var(--bad)")


class Line(NamedTuple):
    """A line of a chart: its name, its points, and whether it is only for comparison (thin and dashed).

    band: half-width of the shaded area around each point. points: small dots that are not connected.
    bars: pale bars from 0 up to the points instead of a line. shade: only the band, without a line.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    aside: bool = False
    dots: bool = False
    band: Sequence[float] = ()
    points: bool = False
    bars: bool = False
    shade: bool = False


class LegendKey(NamedTuple):
    """An entry of a legend; kind: line, dashed, band, bar, dot, or text without a symbol."""

    text: str
    colour: str = ""
    kind: str = "line"


class Chart(NamedTuple):
    """A drawing with its legend; label says what it shows, and names the file it is saved to."""

    svg: Markup
    label: str
    legend: tuple[LegendKey, ...] = ()


class Frame(NamedTuple):
    """Maps data to positions on the chart."""

    x0: float
    x1: float
    y0: float
    y1: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where (x, y) is drawn."""
        across = (x - self.x0) / ((self.x1 - self.x0) or 1)
        up = (y - self.y0) / ((self.y1 - self.y0) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers within [low, high].

    >>> ticks(0.0, 1.0), ticks(1, 12), ticks(0.43, 0.57)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0], [0.44, 0.46, 0.48, 0.5, 0.52, 0.54, 0.56])
    """
    span = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(span / about))
    step = next(step * m for m in (1, 2, 5, 10) if span / (step * m) <= about * 1.5)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(
    lines: Sequence[Line], label: str, x_label: str, y_label: str,
    x_range: tuple[float, float] | None = None, y_range: tuple[float, float] | None = None, mark: float | None = None,
    whole: bool = False,
) -> Chart:  # fmt: skip
    """Lines over common axes, with a legend; mark: x of a vertical line, whole: only integers as ticks of x."""
    xs, ys = [v for s in lines for v in s.x], [v for s in lines for v in s.y]
    ys += [y + sign * b for s in lines for y, b in zip(s.y, s.band, strict=False) for sign in (-1, 1)]
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    room = 0.06 * (high - low) or 0.05  # a flat line lies in the middle
    frame = Frame(*(x_range or (min(xs, default=0.0), max(xs, default=1.0))), *(y_range or (low - room, high + room)))
    at = [x for x in ticks(frame.x0, frame.x1) if not whole or x == round(x)]
    body = _axes(frame, x_label, y_label, at)
    if mark is not None:
        x, _ = frame.at(mark, 0)
        body += (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="frame" stroke-dasharray="3 4"/>'
        )
    for k, s in enumerate(lines):
        if s.band:
            body += _shade(frame, s, _colour(lines, k))
        if s.shade:
            continue
        places = [frame.at(x, y) for x, y in zip(s.x, s.y, strict=True)]
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""
        thin = 'stroke-width="1.4" stroke-dasharray="5 4"' if s.aside else 'stroke-width="2.4"'
        if s.bars:
            low = frame.at(0, 0)[1]
            body += "".join(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{y:.1f}" stroke="{_colour(lines, k)}" '
                'stroke-width="9" stroke-opacity="0.3"/>'
                for x, y in places
            )
            continue
        if s.points:
            colour = _colour(lines, k)
            dots = (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}" fill-opacity="0.5"/>' for x, y in places
            )
            body += "".join(dots)
            continue
        body += f'<path d="{d}" fill="none" stroke="{_colour(lines, k)}" {thin} stroke-linejoin="round"/>'
        if s.dots or len(places) == 1:
            body += "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{_colour(lines, k)}"/>' for x, y in places
            )
    legend = (LegendKey(s.name, _colour(lines, k), _sign(s)) for k, s in enumerate(lines))
    return Chart(_svg(label, body), label, tuple(legend))


def _sign(s: Line) -> str:
    """The symbol of a line in the legend."""
    if s.bars or s.shade:
        return "band"
    if s.points or len(s.x) == 1:
        return "dot"
    return "dashed" if s.aside else "line"


def strip_chart(
    groups: Mapping[str, Mapping[str, Sequence[float]]], label: str, y_label: str, percent: bool = True
) -> Chart:
    """One column per group, its values as dots (a colour per kind, such as the seed), a bar at the mean."""
    values = [v for group in groups.values() for series in group.values() for v in series]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max((high - low) * 0.12, 1.0) if percent else (high - low) * 0.12 or abs(high) * 0.1 or 1.0
    low, high = (max(0.0, low - room), min(100.0, high + room)) if percent else (low - room, high + room)
    frame = Frame(0, max(len(groups), 1), low, high)
    body = _axes(frame, "", y_label, ())
    kinds = list(dict.fromkeys(kind for group in groups.values() for kind in group))
    for g, (name, group) in enumerate(groups.items()):
        of_group = [v for series in group.values() for v in series]
        for kind, series in group.items():
            k = kinds.index(kind)
            for i, v in enumerate(series):
                # deterministic jitter within the column
                x, y = frame.at(g + 0.5 + 0.46 * ((i * 0.618 + k * 0.37) % 1 - 0.5), v)
                tip = text(f"{name}, {kind}: {v:.2f}")
                body += (
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[k % len(COLOURS)]}" '
                    f'fill-opacity="0.75"><title>{tip}</title></circle>'
                )
        if of_group:
            (a, y), (b, _) = frame.at(g + 0.18, sum(of_group) / len(of_group)), frame.at(g + 0.82, 0)
            body += f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--ink)" stroke-width="2"/>'
        x, _ = frame.at(g + 0.5, 0)
        lift = 14 if g % 2 and len(groups) > 5 else 0  # names of many columns alternate between two rows
        body += f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17 + lift}" text-anchor="middle">{text(name)}</text>'
    legend = (LegendKey(kind, COLOURS[k % len(COLOURS)], "dot") for k, kind in enumerate(kinds[:20]))
    return Chart(_svg(label, body), label, tuple(legend))


def _shade(frame: Frame, s: Line, colour: str) -> str:
    """The band of a line, cut off at the frame."""

    def edge(sign: int) -> list[tuple[float, float]]:
        sides = [(x, y + sign * b) for x, y, b in zip(s.x, s.y, s.band, strict=True)]
        return [frame.at(x, min(max(y, frame.y0), frame.y1)) for x, y in sides]

    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge(1) + edge(-1)[::-1])
    return f'<polygon points="{points}" fill="{colour}" fill-opacity="0.16"/>'


def _colour(lines: Sequence[Line], k: int) -> str:
    if _pale(lines[k]):
        return "var(--pale)"
    return COLOURS[sum(not _pale(s) for s in lines[:k]) % len(COLOURS)]


def _pale(s: Line) -> bool:
    """Whether a line is background, which has no colour of its own."""
    return s.aside or s.bars or s.shade


def _axes(frame: Frame, x_label: str, y_label: str, across: Sequence[float]) -> str:
    left, right, low, high = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP
    body = ""
    for y in ticks(frame.y0, frame.y1):
        _, at = frame.at(frame.x0, y)
        body += f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="axis"/>'
        body += f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>'
    for x in across:
        at, _ = frame.at(x, frame.y0)
        body += f'<text x="{at:.1f}" y="{low + 17}" text-anchor="middle">{x:g}</text>'
    body += f'<line x1="{left}" x2="{right}" y1="{low}" y2="{low}" class="frame"/>'
    body += f'<text x="{(left + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{text(x_label)}</text>'
    middle = (low + high) / 2
    return (
        body
        + f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{text(y_label)}</text>'
    )


def _svg(label: str, body: str) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(label)}">{body}</svg>'
    )
