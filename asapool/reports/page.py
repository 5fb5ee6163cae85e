"""Pages are Jinja2 templates, rendered to one HTML file each that contains its style and script and works offline.

Everything put into a template is escaped unless it is Markup made by this package. The content security policy allows
only the page's own script, identified by its hash, so that no injected script can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


@dataclass(frozen=True)
class TableView:
    """A table on a page: the first column names the row, `notes` explains columns by name."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    caption: str = ""
    classes: str = "numbers"
    notes: Sequence[tuple[str, str]] = ()

    @property
    def named(self) -> bool:
        """Whether any column has a name."""
        return any(self.header)


class Fact(NamedTuple):
    """A large number with its name and a remark."""

    name: str
    number: str
    remark: str = ""


def text(value: object) -> str:
    """A value escaped for use between tags or in an attribute.

    >>> text("<b> & 'c'")
    '&lt;b&gt; &amp; &#39;c&#39;'
    """
    return str(escape(str(value)))


def script_data(value: Any) -> Markup:
    """Plain data for a script block; no text in it can end the block or begin a comment.

    >>> str(script_data({"name": "</script><!--"}))
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    plain = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        plain = plain.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(plain)


def render(template: str, *, heading: str, about: str, title: str | None = None, **values: Any) -> str:
    """A whole page; `heading` and `about` are at the top, `title` (default: the heading) is in the browser's tab."""
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    frame = {"policy": Markup(policy), "style": Markup(_asset("page.css")), "script": Markup(script)}
    names = {"heading": heading, "about": about, "title": title or heading, "links": values.pop("links", ())}
    return _environment().get_template(template).render(frame | names | values) + "\n"


@cache
def _environment() -> Environment:
    from asapool.insight.drawing.overlays import ARCS
    from asapool.insight.importance import KINDS

    loader = PackageLoader("asapool.reports")
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.globals.update(kinds=list(KINDS.values()), arcs=f"{ARCS:,}")
    return env


@cache
def _asset(name: str) -> str:
    return files("asapool.reports").joinpath("templates", name).read_text(encoding="utf-8")


def seed_table(
    names: Sequence[str], rows: Iterable[tuple[Sequence[str], str, Sequence[float]]], percent: bool = True
) -> TableView:
    """A row per seed: its labels, the seed, and number, mean, lowest and highest score of its folds.

    >>> seed_table(["method"], [(["asap"], "8971", [70.0, 72.0])]).rows
    [['asap', '8971', '2', '71.00', '70.00', '72.00']]
    """
    lines = [
        [*labels, seed, str(len(v)), f"{sum(v) / len(v):.2f}", f"{min(v):.2f}", f"{max(v):.2f}"]
        for labels, seed, v in rows
    ]
    return TableView(
        [*names, "seed", "folds", "mean", "lowest", "highest"], lines, "By seed, in percent" if percent else "By seed"
    )
