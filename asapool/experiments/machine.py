"""On what a record was made: processor, system and the versions that may change a number."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import asapool

LIBRARIES = {"numpy": "numpy", "numba": "numba", "torch": "torch", "torch_geometric": "torch-geometric"}


@cache
def machine() -> dict[str, Any]:
    """This machine and the versions of what computes on it.

    >>> sorted(machine())[:3]
    ['asapool', 'commit', 'cores']
    """
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(package) for name, package in LIBRARIES.items()},
        "asapool": asapool.__version__,
        "commit": _commit(Path(asapool.__file__).parents[1]),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit(root: Path) -> str | None:
    """The commit of a checkout; an installed package has none, even when its environment lies inside a checkout."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
