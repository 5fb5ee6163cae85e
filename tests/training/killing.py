"""A run that is killed again and again at random moments; test_run.py calls it in a process of its own.

It forks, so that every attempt costs a fraction of a second. The kernel ends an attempt after a random amount of
processor time (SIGPROF, which nothing handles): with a clock the moments would depend on what else the machine does.
"""

import os
import random
import shutil
import signal
import sys
import time

import torch

from asapool.training import resolve, resume, start

torch.set_num_threads(1)


def main(folder, kills):
    chance = random.Random(kills)
    tables = {
        "data": {"source": "synthetic:cycles?graphs=40&nodes=8"},
        "model": {"hidden": 8, "attention_dropout": 0.1},
        "train": {"epochs": 30, "batch_size": 16, "threads": 1},
    }
    settings, graphs = resolve(tables)
    start(settings, graphs, f"{folder}/undisturbed")
    began = time.process_time()
    start(settings, graphs, f"{folder}/timed")  # everything is compiled now: this is how long a run takes here
    most = (time.process_time() - began) * 1.2 / kills  # all attempts together get about half way
    count, begun = 0, False
    while True:
        child = os.fork()
        if child == 0:
            if count < kills or not begun:
                signal.setitimer(signal.ITIMER_PROF, max(chance.random() * most, 1e-3))
            try:
                # a kill before config.toml was written leaves nothing to go on with, and no run either
                if os.path.exists(f"{folder}/killed/config.toml"):
                    resume(f"{folder}/killed")
                else:
                    start(settings, graphs, f"{folder}/killed", overwrite=True)
                os._exit(0)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(3)
        chance.random()  # the child's draw
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            count += 1
            begun = begun or os.path.exists(f"{folder}/killed/state.safetensors")
            most = most if begun else 1.3 * most
        elif status == 0 and (count < kills or not begun):
            # the timed run was slower than these: begin again with earlier kills
            shutil.rmtree(f"{folder}/killed")
            count, begun, most = 0, False, most / 2
        elif status == 0:
            break
        else:
            sys.exit(f"attempt {count} ended with {status}")
    print(count)
