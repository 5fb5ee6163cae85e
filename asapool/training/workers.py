"""Worker processes: they exit with their parent, and the cause of their exit is reported."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import sys
import threading
from multiprocessing.connection import wait


def become_worker(number: int = 0) -> None:
    """Make this process a worker: one torch thread, Ctrl-C ignored, and exit when the parent is killed.

    number: of the worker on this machine, which decides its GPU (see device.resolve_device).
    """
    os.environ["LOCAL_RANK"] = str(number)  # torchrun's name for it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"  # for a torch that is loaded later
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def exit_cause(code: int) -> str:
    """Why a process ended.

    >>> exit_cause(-9)
    'the process was ended by signal 9 (SIGKILL): the machine may be out of memory, try fewer jobs'
    """
    if code == -signal.SIGKILL:
        return "the process was ended by signal 9 (SIGKILL): the machine may be out of memory, try fewer jobs"
    if code < 0:
        return f"the process was ended by signal {-code} ({signal.Signals(-code).name})"
    return f"the process ended with code {code} before the task was done"


def _end_with_parent() -> None:
    """Exit when the parent is killed, because nothing would receive the results."""
    parent = mp.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
