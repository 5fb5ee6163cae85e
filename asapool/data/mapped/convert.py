"""A source becomes a .graphs folder.

Tables of molecules are read in pieces of some thousand rows, by several processes; each piece is a file under parts/,
so that a conversion that was stopped goes on with the pieces that are missing. Other sources are read whole. At the
end the pieces are put together, and meta.json is written.
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
from asapool.errors import AsapoolError, ConfigError, DataError, WriteError
from asapool.files import working_in, write_json

CHUNK = 20_000  # rows of a piece
PARTS, PLAN = "parts", "plan.json"
OnPart = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What is converted, and into which pieces."""

    source: str
    stamp: list[int]  # size and time of change of the source
    options: dict[str, Any]  # of asapool.load, with the recipe of the whole source
    chunk: int
    rows: int

    @property
    def pieces(self) -> int:
        """How many there are."""
        return -(-self.rows // self.chunk)


def convert(
    source: str | Path, out: str | Path, *, workers: int = 1, chunk: int = CHUNK, on_part: OnPart | None = None,
    **options: Any,
) -> Reading:  # fmt: skip
    """Write a source as a folder of memory-mapped arrays, or go on with a conversion that was stopped.

    Args:
        source: whatever asapool.load takes; tables of molecules are read in pieces, other sources whole.
        out: the folder, whose name ends with .graphs.
        workers: processes that read a table.
        chunk: rows of a piece.
        on_part: called with the number of finished pieces, and of all.
        options: those of asapool.load.

    Returns:
        The mapped set, and what was learned while reading.
    """
    chosen = ReadOptions(labels="optional", **options)
    out, path = Path(out), Path(source).expanduser()
    if out.suffix.lower() != ".graphs":
        raise ConfigError(f"{out}: expected the name of a folder that ends with .graphs")
    reader = reader_of(path) if path.is_file() else None
    with working_in(out):
        _refuse_other_files(out)
        if reader is not None and reader.table:
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
        graphs=graphs, skipped=skipped, missing=meta["missing"], unlabelled=unlabelled, notes=tuple(meta["notes"])
    )


def _refuse_other_files(out: Path) -> None:
    ours = {META, PLAN, PARTS, ".lock"}
    others = [p.name for p in out.iterdir() if p.name not in ours and p.suffix != ".npy" and not p.name.startswith(".")]
    if others:
        raise WriteError(f"{out}: holds other files, such as {others[0]}. Give a folder of its own, such as set.graphs")


def _plan_table(path: Path, options: ReadOptions, out: Path, chunk: int) -> Conversion:
    """The plan of an earlier conversion of the same file, or a new one."""
    given = {name: value for name, value in asdict(options).items() if value is not None and name != "workers"}
    info = path.stat()
    started = Conversion(str(path.resolve()), [info.st_size, info.st_mtime_ns], given, chunk, 0)
    if _finished(out, started) is not None:
        return started
    with suppress(OSError, ValueError, TypeError, KeyError):
        held = json.loads((out / PLAN).read_text())
        recipe = held["options"].pop("recipe")
        if held | {"rows": 0} == json.loads(json.dumps(asdict(started))):
            return Conversion(**held | {"options": held["options"] | {"recipe": recipe}})
    known, rows = scan_table(path, options)
    plan = replace(started, options=given | {"recipe": known.recipe}, rows=rows)
    shutil.rmtree(out / PARTS, ignore_errors=True)  # of another source, or other options
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
    """The description of a finished folder of the same source; one of another source is refused."""
    if not (out / META).exists():
        return None
    meta = Stored(out).meta
    if [meta["source"], meta["stamp"]] != [plan.source, plan.stamp] or meta["options"] != _plain(plan.options):
        raise WriteError(
            f"{out}: already holds the graphs of {meta['source']}, converted from another state of the file or with "
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
        for done in _shares(plan, out, 0, 1):
            if on_part is not None:
                on_part(done + 1, plan.pieces)
        return
    above = str(Path(asapool.__file__).parent.parent)
    python = os.pathsep.join(filter(None, [above, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": python, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "asapool.data.mapped.convert", str(out), str(rank), str(workers)],
            stderr=subprocess.PIPE, env=environment,
        )
        for rank in range(workers)
    ]  # fmt: skip
    try:
        while any(process.poll() is None for process in started):
            _check(started)
            if on_part is not None:
                on_part(sum(1 for _ in (out / PARTS).glob("*.npz")), plan.pieces)
            time.sleep(0.2)
        _check(started)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _check(started: list[subprocess.Popen[bytes]]) -> None:
    """Raise the error of a process that failed."""
    for process in started:
        code = process.poll()
        if code:
            text = b"" if process.stderr is None else process.stderr.read()
            last = text.decode(errors="replace").strip().rpartition("\n")[2]
            if code == AsapoolError.exit_code:
                raise DataError(last)
            cause = signal.Signals(-code).name if code < 0 else f"code {code}"
            raise DataError(
                f"a process that reads molecules was ended ({cause}{': ' + last if last else ''}). Repeat the command: "
                "it goes on where it stopped"
            )


def _shares(plan: Conversion, out: Path, rank: int, size: int) -> Iterator[int]:
    """Read the pieces of one process that are not there yet."""
    options = ReadOptions(**{name: value for name, value in plan.options.items() if name != "features"})

    def wanted(number: int) -> bool:
        return number % size == rank and not _file(out, number).exists()

    for number, reading, lines in stream_shares(Path(plan.source), options, plan.chunk, wanted):
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
    """Put the pieces together."""
    parts = [_file(out, k) for k in range(plan.pieces)]
    notes = [notes_of(part) for part in parts]
    skipped = [row for note in notes for row in note["skipped"]] if plan.options.get("recipe") else notes[0]["skipped"]
    full = [(part, note) for part, note in zip(parts, notes, strict=True) if read_part(part, "sizes")]
    if not full:
        raise DataError(f"{plan.source}: none of the {plan.rows} molecules could be read. {skipped[0][1]}")
    merger = Merger(out, [part for part, _ in full])
    merger.merge()
    recipe = plan.options.get("recipe")
    texts = list(dict.fromkeys(text for note in notes for text in note["notes"]))
    named = any(note["named"] for _, note in full)
    if recipe is None:
        held = json.loads((out / PLAN).read_text())
        recipe, target, name, classes = held["recipe"], held["target"], held["name"], held["classes"]
        merger.merge_texts("ids")
    else:
        classes = recipe["classes"]
        target = recipe.get("task") or Target(names=(recipe["target"] or "label",), classes=tuple(classes)).to_dict()
        name = path.name.removesuffix(".gz").rpartition(".")[0] or path.stem
        note = check_ids(path, options, _used_twice([part for part, _ in full])) if named else None
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
    for note_ in notes:
        for word, times in note_["missing"].items():
            missing[word] = missing.get(word, 0) + times
    meta = {
        "format": FORMAT, "version": VERSION, "source": plan.source, "stamp": plan.stamp,
        "options": _plain(plan.options),
        "name": name, "recipe": recipe, "target": target, "class_names": classes, "named": named,
        "feature_names": full[0][1]["feature_names"], "skipped": skipped, "missing": missing, "notes": texts,
        "files": merger.files, "rows": merger.rows, "fingerprint": "",
    }  # fmt: skip
    unnamed = out / f".{META}"
    write_json(unnamed, meta)
    meta["fingerprint"] = digest(open_map(out, unnamed.name))
    write_json(out / META, meta, durable=True)
    unnamed.unlink()
    (out / PLAN).unlink(missing_ok=True)


def _used_twice(parts: list[Path]) -> str | None:
    """An id that two graphs have, if there is one."""

    def ids(part: Path) -> Iterator[str]:
        held = read_part(part, "ids", "ids_ptr")
        text, ptr = bytes(held["ids"]), held["ids_ptr"].tolist()
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
    """What a process does that _read_table started."""
    try:
        plan = Conversion(**json.loads((Path(out) / PLAN).read_text()))
        for _ in _shares(plan, Path(out), int(rank), int(size)):
            pass
    except AsapoolError as error:
        print(error, file=sys.stderr)
        return AsapoolError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_work(*sys.argv[1:]))
