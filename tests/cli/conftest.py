"""What several tests of commands need."""

import os
import subprocess

import pytest


@pytest.fixture
def mount(tmp_path):
    """A small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: a full or read-only disk; mounting a small one takes root")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"NOT TESTED: a full or read-only disk; mount says: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
