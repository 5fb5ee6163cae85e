"""Hooks of the documentation site: pages that live in the root of the repository, and the API pages of each package."""

import logging
from importlib import import_module
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
LOG = logging.getLogger("mkdocs.asapool")  # a warning of it fails a strict build
API = ("asapool", "nn", "data", "models", "training", "experiments", "insight", "theory")


def on_files(files, config):
    """Add the pages that are no files in docs/."""
    for page, source in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    for name in API:
        files.append(File.generated(config, f"api/{name}.md", content=_api_page(name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Let links to pages in the root lead to their place on the site."""
    for target, source in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}").replace(f"]({source}", f"]({target}")
    return markdown


def _api_page(name):
    """One entry for every public name of a package, classes first; `asapool` itself links to the other pages."""
    module = import_module("asapool" if name == "asapool" else f"asapool.{name}")
    objects = {n: getattr(module, n) for n in module.__all__ if not n.startswith("_")}
    ours = [n for n in objects if getattr(objects[n], "__module__", "").startswith("asapool")]
    ours.sort(key=lambda n: (not isinstance(objects[n], type), n.lower()))
    lines = [f"# {module.__name__}", (module.__doc__ or "").strip().split("\n\n")[0]]
    for n in ours:
        if not (objects[n].__doc__ or "").strip():
            LOG.warning("%s.%s is public and has no docstring", module.__name__, n)
        home = "" if name != "asapool" else objects[n].__module__.split(".")[1]
        path = f"{objects[n].__module__}.{objects[n].__qualname__}"
        lines.append(f"- [asapool.{n}][{path}]" if home in API else f"::: {path}")
    return "\n\n".join(lines)
