"""Converts a source into a .graphs folder.

Tables of molecules are read in pieces of some thousand rows, by several processes; each piece is a file under parts/,
so that an interrupted conversion continues with the missing pieces. Other sources are read whole. At the end the pieces
are merged and meta.json is written.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

import asapool
from asapool.data.loading import read
from asapool.data.mapped.folder import FORMAT, META, VERSION, Stored, open_map
from asapool.data.mapped.parts import (
    Merger,
    check_ids,
    in_memory,
    notes_of,
    part_of,
    read_part,
    scan_table,
    stream_shares,
    write_part,
)
from asapool.data.npz import digest
from asapool.data.readers import reader_of
from asapool.data.reading import Reading, ReadOptions, Skipped
from asapool.data.targets import Target
from asapool.data.unreadable import allowed_rows, check_few, few_note
from asapool.errors import AsapoolError, ConfigError, DataError, WriteError
from asapool.files import working_in, write_json

CHUNK = 20_000  # rows of a piece
PARTS, PLAN = "parts", "plan.json"
OnPart = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What is converted, and into which pieces."""

    source: str
    stamp: list[int]  # size and modification time of the source
    options: dict[str, Any]  # of asapool.load, with the recipe of the whole source
    chunk: int
    rows: int

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return -(-self.rows // self.chunk)


def convert(
    source: str | Path, out: str | Path, *, workers: int = 1, chunk: int = CHUNK, on_part: OnPart | None = None,
    **options: Any,
) -> Reading:  # fmt: skip
    """Write a source as a folder of memory-mapped arrays, or continue an interrupted conversion.

    Args:
        source: whatever asapool.load takes; tables of molecules are read in pieces, other sources whole.
        out: the folder, whose name ends with .graphs.
        workers: processes that read a table.
        chunk: rows per piece.
        on_part: called with the number of finished pieces and the total.
        options: those of asapool.load.

    Returns:
        The mapped set, with skipped rows, missing values and notes.
    """
    chosen = ReadOptions(labels="optional", **options)
    out, path = Path(out), Path(source).expanduser()
    if out.suffix.lower() != ".graphs":
        raise ConfigError(f"{out}: expected a folder name that ends with .graphs")
    reader = reader_of(path) if path.is_file() else None
    with working_in(out):
        _refuse_other_files(out)
        if reader is not None and reader.table and chosen.duplicates != "merge":  # which needs all rows at once
            plan = _plan_table(path, chosen, out, chunk)
            if not (out / META).exists():
                _read_table(plan, out, workers, on_part)
        else:
            plan = _plan_whole(source, path, chosen, chunk)
            if _finished(out, plan) is None:
                plan = replace(plan, rows=_read_whole(source, chosen, out, chunk))
        if not (out / META).exists():
            _finish(plan, out, path, chosen)
        meta = Stored(out).meta
        shutil.rmtree(out / PARTS, ignore_errors=True)
    graphs = open_map(out)
    skipped = tuple(Skipped(*row) for row in meta["skipped"])
    unlabelled = int((~graphs.labelled).sum())
    return Reading(
        graphs=graphs, skipped=skipped, missing=meta["missing"], unlabelled=unlabelled, notes=tuple(meta["notes"]),
        noted=chosen.skip_invalid is None,
    )  # fmt: skip


def _refuse_other_files(out: Path) -> None:
    known = {META, PLAN, PARTS, ".lock"}
    others = [
        p.name for p in out.iterdir() if p.name not in known and p.suffix != ".npy" and not p.name.startswith(".")
    ]
    if others:
        raise WriteError(f"{out}: contains other files, such as {others[0]}. Give a new folder, such as set.graphs")


def _plan_table(path: Path, options: ReadOptions, out: Path, chunk: int) -> Conversion:
    """The plan of an earlier conversion of the same file, or a new one."""
    given = {name: value for name, value in asdict(options).items() if value is not None and name != "workers"}
    info = path.stat()
    started = Conversion(str(path.resolve()), [info.st_size, info.st_mtime_ns], given, chunk, 0)
    if _finished(out, started) is not None:
        return started
    with suppress(OSError, ValueError, TypeError, KeyError):
        saved = json.loads((out / PLAN).read_text())
        recipe = saved["options"].pop("recipe")
        if saved | {"rows": 0} == json.loads(json.dumps(asdict(started))):
            return Conversion(**saved | {"options": saved["options"] | {"recipe": recipe}})
    known, rows = scan_table(path, options)
    plan = replace(started, options=given | {"recipe": known.recipe}, rows=rows)
    shutil.rmtree(out / PARTS, ignore_errors=True)  # pieces of another source or of other options
    write_json(out / PLAN, asdict(plan))
    return plan


def _plan_whole(source: str | Path, path: Path, options: ReadOptions, chunk: int) -> Conversion:
    info = path.stat() if path.is_file() else None
    given = {name: str(value) for name, value in asdict(options).items() if value is not None and name != "workers"}
    return Conversion(
        str(path.resolve() if path.exists() else source), [] if info is None else [info.st_size, info.st_mtime_ns],
        given, chunk, 0,
    )  # fmt: skip


def _finished(out: Path, plan: Conversion) -> dict[str, Any] | None:
    """The meta.json of a finished folder of the same source, or None; a folder of another source is refused."""
    if not (out / META).exists():
        return None
    meta = Stored(out).meta
    if [meta["source"], meta["stamp"]] != [plan.source, plan.stamp] or meta["options"] != _plain(plan.options):
        raise WriteError(
            f"{out}: already contains the graphs of {meta['source']}, from another version of the file or with "
            "other options. Remove it, or choose another name"
        )
    return meta


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps({k: v for k, v in options.items() if k != "recipe"}, default=str))
    return plain


def _file(out: Path, number: int) -> Path:
    return out / PARTS / f"{number:06d}.npz"


def _read_table(plan: Conversion, out: Path, workers: int, on_part: OnPart | None) -> None:
    (out / PARTS).mkdir(exist_ok=True)
    missing = [k for k in range(plan.pieces) if not _file(out, k).exists()]
    workers = max(1, min(workers, len(missing)))
    if workers == 1:
        for number in _write_missing(plan, out, 0, 1):
            if on_part is not None:
                on_part(number + 1, plan.pieces)
        return
    package_root = str(Path(asapool.__file__).parent.parent)
    python_path = os.pathsep.join(filter(None, [package_root, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "asapool.data.mapped.convert", str(out), str(rank), str(workers)],
            stderr=subprocess.PIPE, env=environment,
        )
        for rank in range(workers)
    ]  # fmt: skip
    try:
        running = True
        while running:
            running = any(process.poll() is None for process in started)
            _check(started, [_next_piece(plan, out, rank, workers) for rank in range(workers)])
            if on_part is not None:
                on_part(sum(1 for _ in (out / PARTS).glob("*.npz")), plan.pieces)
            time.sleep(0.2 if running else 0)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _next_piece(plan: Conversion, out: Path, rank: int, size: int) -> int:
    """The first missing piece of a process: the one that it reads now, or failed to read."""
    return next((k for k in range(rank, plan.pieces, size) if not _file(out, k).exists()), plan.pieces)


def _check(started: list[subprocess.Popen[bytes]], pieces: list[int]) -> None:
    """Raise the error of a process that failed.

    An unreadable line is reported only when no other process reads an earlier piece, so that the first one of the file
    is named whichever process is faster.
    """
    for _, process in sorted(zip(pieces, started, strict=True), key=lambda pair: pair[0]):
        code = process.poll()
        if code is None:
            return
        if code:
            text = b"" if process.stderr is None else process.stderr.read()
            last = text.decode(errors="replace").strip().rpartition("\n")[2]
            if code == AsapoolError.exit_code:
                raise DataError(last)
            cause = signal.Signals(-code).name if code < 0 else f"code {code}"
            raise DataError(
                f"a process reading molecules failed ({cause}{': ' + last if last else ''}). Repeat the command: "
                "it continues where it stopped"
            )


def _write_missing(plan: Conversion, out: Path, rank: int, size: int) -> Iterator[int]:
    """Write the missing pieces of process rank (of size), and yield their numbers."""
    options = ReadOptions(**{name: value for name, value in plan.options.items() if name != "features"})

    def wanted(number: int) -> bool:
        return number % size == rank and not _file(out, number).exists()

    for number, reading, lines in stream_shares(Path(plan.source), options, plan.chunk, plan.rows, wanted):
        part = part_of(reading) if len(reading.graphs) else {"notes": part_of(reading)["notes"]}
        write_part(_file(out, number), part | {"lines": lines})
        yield number


def _read_whole(source: str | Path, options: ReadOptions, out: Path, chunk: int) -> int:
    reading = read(source, **{name: v for name, v in asdict(options).items() if v is not None})
    shutil.rmtree(out / PARTS, ignore_errors=True)
    (out / PARTS).mkdir()
    number = count()
    for piece in in_memory(reading.graphs, chunk):
        write_part(_file(out, next(number)), part_of(replace(reading, graphs=piece)))
    graphs = reading.graphs
    target, name, recipe = graphs.target.to_dict(), graphs.name, dict(graphs.recipe)
    write_json(out / PLAN, {"target": target, "name": name, "recipe": recipe, "classes": list(graphs.class_names)})
    return len(graphs)


def _finish(plan: Conversion, out: Path, path: Path, options: ReadOptions) -> None:
    """Merge the pieces and write meta.json."""
    parts = [_file(out, k) for k in range(plan.pieces)]
    notes = [notes_of(part) for part in parts]
    recipe = plan.options.get("recipe")
    skipped = [Skipped(*row) for note in (notes if recipe is not None else notes[:1]) for row in note["skipped"]]
    if recipe is not None:  # a table, of which every piece may have had a few unreadable rows
        check_few(path, skipped, plan.rows, allowed_rows(options, plan.rows, few=True))
    full = [(part, note) for part, note in zip(parts, notes, strict=True) if read_part(part, "sizes")]
    if not full:
        raise DataError(f"{plan.source}: none of the {plan.rows} molecules could be read. {skipped[0].reason}")
    merger = Merger(out, [part for part, _ in full])
    merger.merge()
    texts = list(dict.fromkeys(text for note in notes for text in note["notes"]))
    named = any(note["named"] for _, note in full)
    if recipe is None:
        saved = json.loads((out / PLAN).read_text())
        recipe, target, name, classes = saved["recipe"], saved["target"], saved["name"], saved["classes"]
        merger.merge_texts("ids")
    else:
        if skipped and options.skip_invalid is None:
            texts.append(few_note(path, skipped, plan.rows))
        classes = recipe["classes"]
        target = recipe.get("task") or Target(names=(recipe["target"] or "label",), classes=tuple(classes)).to_dict()
        name = path.name.removesuffix(".gz").rpartition(".")[0] or path.stem
        note = check_ids(path, options, _duplicate_id([part for part, _ in full])) if named else None
        if note is not None:
            texts, named = [*texts, note], False
            lines = {
                p: k for part, _ in full for p, k in zip(*read_part(part, "places", "lines").values(), strict=True)
            }
            merger.merge_texts("ids", lambda places: [str(lines[place]) for place in places.tolist()])
        else:
            merger.merge_texts("ids")
    merger.merge_texts("source_text")
    missing: dict[str, int] = {}
    for piece in notes:
        for value, times in piece["missing"].items():
            missing[value] = missing.get(value, 0) + times
    meta = {
        "format": FORMAT, "version": VERSION, "source": plan.source, "stamp": plan.stamp,
        "options": _plain(plan.options),
        "name": name, "recipe": recipe, "target": target, "class_names": classes, "named": named,
        "feature_names": full[0][1]["feature_names"], "skipped": skipped, "missing": missing, "notes": texts,
        "files": merger.files, "rows": merger.rows, "fingerprint": "",
    }  # fmt: skip
    draft = out / f".{META}"  # without a fingerprint, which is computed from the opened folder
    write_json(draft, meta)
    meta["fingerprint"] = digest(open_map(out, draft.name))
    write_json(out / META, meta, durable=True)
    draft.unlink()
    (out / PLAN).unlink(missing_ok=True)


def _duplicate_id(parts: list[Path]) -> str | None:
    """An id that two graphs have, if there is one."""

    def ids(part: Path) -> Iterator[str]:
        arrays = read_part(part, "ids", "ids_ptr")
        text, ptr = bytes(arrays["ids"]), arrays["ids_ptr"].tolist()
        return (text[a:b].decode() for a, b in pairwise(ptr))

    hashes = np.concatenate([np.fromiter(map(hash, ids(part)), np.int64) for part in parts])
    values, counts = np.unique(hashes, return_counts=True)
    suspects, seen = set(values[counts > 1].tolist()), set()
    for part in parts if suspects else ():
        for text in ids(part):
            if hash(text) in suspects:
                if text in seen:
                    return text
                seen.add(text)
    return None


def _work(out: str, rank: str, size: str) -> int:
    """Main function of a process that _read_table starts; returns its exit code."""
    try:
        plan = Conversion(**json.loads((Path(out) / PLAN).read_text()))
        for _ in _write_missing(plan, Path(out), int(rank), int(size)):
            pass
    except AsapoolError as error:
        print(error, file=sys.stderr)
        return AsapoolError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_work(*sys.argv[1:]))
