"""The pages of the service: the front page and the reference of its addresses; both need no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    loader = PackageLoader("asapool.serve")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def front_page(card: Mapping[str, Any], key: bool) -> str:
    """The page at /."""
    test = (card["scores"] or {}).get("test") or {}
    facts = [("method", card["method"]), ("trained on", card["trained_on"] or "unknown data")]
    if isinstance(test.get("accuracy"), float):
        facts.append(("test accuracy", f"{test['accuracy']:.3f}"))
    if card["conformal"] is not None:
        facts.append(("conformal coverage", f"{card['conformal']:.0%}"))
    return (
        _environment()
        .get_template("front.html")
        .render(card=card, key=key, facts=facts, molecules=card["recipe"].get("kind") == "smiles")
    )


def docs_page(openapi: Mapping[str, Any]) -> str:
    """The page at /docs: every address with its purpose, and the body of a request."""
    rows = [
        (verb.upper(), path, entry.get("summary", ""))
        for path, verbs in openapi["paths"].items()
        for verb, entry in verbs.items()
    ]
    body = openapi["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return _environment().get_template("docs.html").render(rows=rows, body=json.dumps(body, indent=2))
