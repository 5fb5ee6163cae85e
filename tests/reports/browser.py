"""A real browser for the tests of pages, or a loud reason why there is none."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

ARTEFACTS = Path(__file__).parents[2] / "test-artefacts"
ARGS = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip


def chromium():
    """Where Chromium is: $CHROMIUM, or one of its usual names."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((result for name in names if name and (result := shutil.which(name))), None)


@contextmanager
def started():
    """A running browser."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="NOT TESTED: pages in a real browser; pip install playwright"
    )
    path = chromium()
    if path is None:
        pytest.skip(
            "NOT TESTED: pages in a real browser; there is no chromium. apt-get install chromium, or set CHROMIUM"
        )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser, path, width=1440, scheme="light"):
    """A page of its own; what it wrote to the console, threw or asked the network for must be nothing."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    output, asked = [], []
    page.on("console", lambda message: output.append(message.text))
    page.on("pageerror", lambda error: output.append(str(error)))
    page.on("dialog", lambda dialog: (output.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path.as_uri())
        yield page
        assert output == []
        assert set(asked) == {path.as_uri()}
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than the screen"
    finally:
        page.close()


def keep(page, name):
    """Keep a picture of the whole page among the artefacts."""
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)
