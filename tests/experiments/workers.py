"""Work for other processes; it must be importable there."""

import os
import signal
import time


def square(shared, task):
    return shared * task * task


def size(shared, task):
    time.sleep(0.5)
    return len(shared)


def troubled(shared, task):
    if task == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "exit":
        os._exit(7)
    if task == "raise":
        raise ZeroDivisionError("by hand")
    return os.getpid()


def note_and_wait(shared, task):
    with open(f"{shared}/{task}", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(60)


def threads(shared, task):
    import torch

    return torch.get_num_threads()
