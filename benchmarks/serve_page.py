"""The page of `asapool serve` in Chromium: milliseconds from Enter to the prediction, and to the pictures of it.

    python -m benchmarks.serve_page MODEL [--rounds 20]

Every round opens the page anew and types another molecule of 30 atoms (of the NCI molecules that come with rdkit).
The browser takes the time itself. Writes benchmarks/results/serve_page.json.
"""

from __future__ import annotations

import argparse

import numpy as np

import asapool
from benchmarks.measuring import machine, spread, write
from benchmarks.service import running_service
from tests.reports.browser import started

ATOMS = 30
WATCH = """() => {
  const seen = (selector, name) => {
    const done = () => { if (document.querySelector(selector) && !window[name]) window[name] = performance.now(); };
    new MutationObserver(done).observe(document.body, {childList: true, subtree: true});
  };
  document.addEventListener("keydown", (e) => { if (e.key === "Enter") window.began = performance.now(); }, true);
  seen("#table tbody tr", "answered");
  seen("#pictures img", "drawn");
}"""


def main() -> None:
    """Open the page, type, press Enter, read the clock."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    graphs, about = asapool.load("nci-alerts"), machine()
    chosen = np.flatnonzero(np.diff(graphs.ptr) == ATOMS)[: options.rounds]
    times: dict[str, list[float]] = {"answered": [], "drawn": []}
    with running_service(options.model) as (address, _), started() as browser:
        for i in chosen.tolist():
            page = browser.new_page()
            page.goto(address)
            page.evaluate(WATCH)
            page.focus("#text")
            page.keyboard.insert_text(graphs.source_text[i])
            page.keyboard.press("Enter")
            page.wait_for_selector("#pictures img")
            for name, held in times.items():
                held.append(page.evaluate(f"window.{name} - window.began"))
            page.close()
    write("serve_page", {
        "what": f"milliseconds after Enter, a molecule of {ATOMS} atoms",
        "prediction_ms": spread(times["answered"]) | {"slowest": max(times["answered"])},
        "explanation_ms": spread(times["drawn"]) | {"slowest": max(times["drawn"])},
        "machine": about,
    })  # fmt: skip


if __name__ == "__main__":
    main()
