"""The frame of every page: one HTML file with its style and script inside, which asks no network for anything.

Text of users is escaped wherever it enters, and as a second wall the page's own policy names the one script that may
run, by its hash: whatever else were to slip in as a script would not.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any


def text(value: object) -> str:
    """A value as text between tags or in an attribute.

    >>> text("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(str(value), quote=True)


def data_block(value: Any) -> str:
    """Plain data for the script; no text in it can end the block or begin a comment.

    >>> data_block({"name": "</script><!--"})
    '<script type="application/json">{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}</script>'
    """
    told = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        told = told.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{told}</script>'


def document(title: str, body: str) -> str:
    """A whole page."""
    script = _asset("page.js")
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{mark}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="asapool"><title>{text(title)}</title>'
        f"<style>{_asset('page.css')}</style></head>\n"
        f"<body>{body}\n<script>{script}</script></body></html>\n"
    )


def table(header: list[str], rows: list[list[str]], caption: str = "", classes: str = "") -> str:
    """Cells are escaped; the first column names its row."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in header)
    top = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    lines = "".join(
        f'<tr><th scope="row">{text(row[0])}</th>{"".join(f"<td>{text(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    named = f"<caption>{text(caption)}</caption>" if caption else ""
    # a table may be wider than a phone: it scrolls by itself, with the keyboard too
    scroll = f'class="scroll" tabindex="0" role="region" aria-label="{text(caption or "table")}"'
    return f'<div {scroll}><table class="{classes}">{named}{top}<tbody>{lines}</tbody></table></div>'


def section(title: str, body: str, lead: str = "") -> str:
    """A titled part of a page."""
    said = f'<p class="lead">{text(lead)}</p>' if lead else ""
    return f'<section class="card"><h2>{text(title)}</h2>{said}{body}</section>'


@cache
def _asset(name: str) -> str:
    return files("asapool.reports").joinpath("templates", name).read_text(encoding="utf-8")
