"""Every file call of a training and of a cross-validation fails once, or is the last thing that the process does.

python -m tests.fault_injection [train|cv ...] [--write]

Each command runs in a process of its own, a copy of this one, which has run every command once. Its n-th write, rename,
fsync or removal fails with ENOSPC, EIO or EROFS, or ends in SIGKILL. Then: the command must have ended in a sentence
(exit code 1) or, where the failure does not matter, well (0); no temporary file may be left unless it was killed; what
is there must be whole; and the same command, given again, must end in the model or the table of an undisturbed run.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SOURCE = "synthetic:cycles?graphs=12&nodes=6"
SMALL = ("--method", "asap", "--hidden", "4", "--epochs", "2", "--no-report")


def model_of(folder: Path) -> object:
    """The bytes of a model."""
    return (folder / "model.safetensors").read_bytes()


def tables_of(folder: Path) -> object:
    """The table and its trainings, all but the time they took."""
    rows = [row for name in ("cv.csv", "results.csv") for row in csv.DictReader((folder / name).open(newline=""))]
    return [{column: cell for column, cell in row.items() if column != "seconds"} for row in rows]


COMMANDS = {  # its words, those that resume it, and what must be the same in the end
    "train": (("train", SOURCE, *SMALL), ("train",), model_of),
    "cv": (("cv", SOURCE, *SMALL, "--folds", "3", "--seeds", "1"), None, tables_of),
}
FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS, "kill": None}


class Faults:
    """Counts the file calls below a folder, and lets one of them fail."""

    def __init__(self, folder: Path, at: int | None, fault: str) -> None:
        self.folder, self.at, self.fault, self.calls = str(folder), at, fault, []

    def meet(self, name: str, target: Any) -> None:
        """Called before every call; raises or kills where it is the one."""
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fspath(target)
        if not str(path).startswith(self.folder):
            return
        self.calls.append(name)
        if len(self.calls) - 1 == self.at:
            if FAULTS[self.fault] is None:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(FAULTS[self.fault], os.strerror(FAULTS[self.fault]))

    @contextlib.contextmanager
    def injected(self) -> Iterator[None]:
        """Replace the functions of os that the package writes with."""
        faults = self

        def wrapped(name: str, place: int = 0) -> Callable[..., Any]:
            original = getattr(os, name)

            def call(*args: Any, **options: Any) -> Any:
                faults.meet(name, args[place])
                return original(*args, **options)

            return call

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                faults.meet("write", self.fileno())
                return super().write(data)

        def fdopen(handle: int, mode: str = "r", *args: Any, **options: Any) -> Any:
            return (
                io.BufferedWriter(File(handle, "wb"))
                if mode == "wb"
                else kept["fdopen"](handle, mode, *args, **options)
            )

        names = ("replace", "fsync", "unlink", "remove", "write", "fdopen")
        kept = {name: getattr(os, name) for name in names}
        for name in names:
            setattr(os, name, fdopen if name == "fdopen" else wrapped(name))
        try:
            yield
        finally:
            for name, function in kept.items():
                setattr(os, name, function)


def command(words: tuple[str, ...]) -> tuple[int, str]:
    """Exit code and standard error of a command in this process."""
    from asapool.cli.main import main

    err = io.StringIO()
    sys.argv = ["asapool", *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), err.getvalue()
        except BaseException as error:
            return 70, f"{err.getvalue()}Traceback: {error!r}"
    return 0, err.getvalue()


def run(words: tuple[str, ...], folder: Path, at: int | None, fault: str) -> tuple[int, str, list[str]]:
    """Exit code (negative: the signal), standard error, and the names of the calls; in a child process."""
    notes = folder.parent / "notes"
    child = os.fork()
    if child == 0:
        faults = Faults(folder, at, fault)
        with faults.injected():
            code, err = command(words)
        notes.write_text(json.dumps([err, faults.calls]))
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return -os.WTERMSIG(status), "", []
    err, calls = json.loads(notes.read_text())
    return os.WEXITSTATUS(status), err, calls


def whole(folder: Path) -> str | None:
    """What is wrong with the files of a folder; None if all can be read."""
    from asapool.models import checkpoint

    for path in sorted(folder.rglob("*")):
        try:
            if path.name == "model.safetensors":
                checkpoint.load(path)
            elif path.suffix == ".json":
                json.loads(path.read_text())
        except Exception as error:
            return f"{path.name}: {error!r:.200}"
    return None


def trial(name: str, base: Path, at: int, fault: str, expected: object) -> str | None:
    """One fault; returns what went wrong."""
    words, resume, product = COMMANDS[name]
    folder = base / "run"
    shutil.rmtree(folder, ignore_errors=True)
    code, err, _ = run((*words, "--out", str(folder)), folder, at, fault)
    if code != (-signal.SIGKILL if fault == "kill" else 1) and not (code == 0 and fault != "kill"):
        return f"exit code {code}: {err[-300:]}"
    if "Traceback" in err:
        return f"a traceback: {err[-300:]}"
    left = [p.name for p in folder.rglob(".*") if p.name != ".lock"] if fault != "kill" and folder.exists() else []
    if left:
        return f"left behind: {left}"
    if (trouble := whole(folder)) is not None:
        return trouble
    if code == 0:
        again: tuple[str, ...] | None = None
    elif resume and (folder / "state.safetensors").exists():
        again = (*resume, "--resume", str(folder), "--no-report")
    else:
        again = (*words, "--out", str(folder), *(("--overwrite",) if resume else ()))
    if again is not None:
        code, err, _ = run(again, folder, None, fault)
        if code != 0:
            return f"again: exit code {code}: {err[-300:]}"
    return None if product(folder) == expected else "another result than an undisturbed run"


def main(names: list[str], every: int = 1, keep: bool = False) -> int:
    """Try every call of every command; print a table and what went wrong; return how much did."""
    wrong, outcome, numbers, start = [], Counter(), {}, time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        for name in names:  # loads torch and the compiled loops, which every trial then finds loaded
            command((*COMMANDS[name][0], "--out", str(base / "first" / name)))
        for name in names:
            words, _, product = COMMANDS[name]
            folder = base / "run"
            shutil.rmtree(folder, ignore_errors=True)
            code, err, calls = run((*words, "--out", str(folder)), folder, None, "EIO")
            if code:
                raise SystemExit(f"{name} fails undisturbed: {err}")
            expected, numbers[name] = product(folder), dict(Counter(calls))
            print(f"{name}: {len(calls)} calls {dict(Counter(calls))}", file=sys.stderr, flush=True)
            for at in range(0, len(calls), every):
                print(f"{name}, call {at}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
                for fault in FAULTS:
                    trouble = trial(name, base, at, fault, expected)
                    outcome[name, calls[at], fault, "held" if trouble is None else "WRONG"] += 1
                    if trouble is not None:
                        wrong.append(f"{name}, call {at} ({calls[at]}), {fault}: {trouble}")
                        print(wrong[-1], file=sys.stderr, flush=True)
    for key, times in sorted(outcome.items()):
        print(*(f"{part:10}" for part in key), times)
    print("\n".join(wrong) or "nothing went wrong")
    if keep:
        from benchmarks.measuring import machine, write

        write(
            "fault_injection",
            {
                "what": "every file call of a command fails once, or is the last thing that its process does",
                "command": f"python -m tests.fault_injection {' '.join(names)}",
                "calls": numbers,
                "outcomes": [[*key, times] for key, times in sorted(outcome.items())],
                "faults": sum(outcome.values()),
                "wrong": wrong,
                "seconds": round(time.monotonic() - start),
                "machine": machine(),
            },
        )
    return len(wrong)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [word for word in sys.argv[1:] if word != "--write"]
    sys.exit(1 if main(chosen or list(COMMANDS), keep="--write" in sys.argv) else 0)
