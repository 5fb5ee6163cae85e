"""Atomic file writes, folder locks, JSON, CSV and TOML; failures to write raise WriteError.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_json(f"{folder}/a.json", {"epochs": 5})
...     read_json(f"{folder}/a.json")
{'epochs': 5}
"""

from asapool.files.atomic import refuse_overwriting, remove, sync_folder, write_text, writing
from asapool.files.formats import csv_writer, load_toml, read_json, read_toml, to_toml, write_csv, write_json
from asapool.files.lock import working_in

__all__ = [
    "csv_writer", "load_toml", "read_json", "read_toml", "refuse_overwriting", "remove", "sync_folder", "to_toml",
    "working_in", "write_csv", "write_json", "write_text", "writing",
]  # fmt: skip
