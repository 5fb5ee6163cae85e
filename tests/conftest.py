"""What all tests share: both backends, and one torch thread (the machine may be busy with other tests)."""

import os

# Some virtual machines announce AMX and end a process that uses it, as torch's bfloat16 products then do.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch

torch.set_num_threads(1)


def pytest_addoption(parser):
    """`pytest --device cuda` runs the tests of devices on a GPU; `pytest --slow` runs the slow ones too."""
    parser.addoption("--device", default="cpu", choices=("cpu", "cuda", "mps"), help="where tests of devices run")
    parser.addoption("--slow", action="store_true", help="run tests that take more than 12 seconds")


def pytest_collection_modifyitems(config, items):
    """Slow tests run on request."""
    for item in items:
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="takes more than 12 seconds; run `make test-all`"))


def pytest_sessionstart(session):
    """Two workers do not do the same work twice: one compiles loops while the other one's imports write .pyc files."""
    _compile_loops_in("gw1", torch.float64)


@pytest.hookimpl(trylast=True)  # the tests may be handed out meanwhile
def pytest_collection_finish(session):
    """The first worker has imported everything, and the second one is about to."""
    _compile_loops_in("gw0", torch.float32)


def _compile_loops_in(worker, dtype):
    if os.environ.get("PYTEST_XDIST_WORKER") == worker:
        from tests.kernels.chain import compile_loops

        compile_loops(dtype)


@pytest.fixture
def device(request):
    """The device of --device; tests that need another than the CPU are skipped without one."""
    name = request.config.getoption("--device")
    if name == "cpu":
        pytest.skip("no device other than the CPU was named; run pytest --device cuda (or mps) where there is one")
    return name


def pytest_unconfigure(config):
    """End with one line that says what was not tested, and how to change that (the reasons say so)."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        skipped = [str(report.longrepr[2]).removeprefix("Skipped: ") for report in reporter.stats.get("skipped", [])]
        reasons = "; ".join(f"{reason} ({skipped.count(reason)})" for reason in dict.fromkeys(skipped))
        print(f"Not tested: {reasons}" if reasons else "Not tested: nothing was skipped.")


@pytest.fixture(scope="session")
def browser():
    """A Chromium that all tests of pages share: playwright runs once in a process."""
    from tests.reports.browser import started

    with started() as running:
        yield running


@pytest.fixture(scope="session")
def theory_report():
    """One report of the theory for all tests that show it, and its progress messages: it takes seconds to compute."""
    from asapool.theory import verify

    progress = []
    return verify(max_nodes=9, progress=lambda text, done, total: progress.append((text, done / total))), progress


@pytest.fixture(params=["reference", "fused"])
def backend(request):
    return request.param


@pytest.fixture(autouse=True)
def one_thread():
    """One thread after every test: a child forked from a process with several would wait for them forever."""
    yield
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture
def loops_shared(monkeypatch):
    """Loops are shared among the threads however little there is to do."""
    from asapool.kernels.fused import compiled

    monkeypatch.setattr(compiled, "CHEAP", 1)


@pytest.fixture
def shared_datasets():
    """The folder of benchmark data sets, where there is one."""
    from pathlib import Path

    folder = Path(os.environ.get("ASAPOOL_DATA", Path(__file__).parents[2] / "shared" / "datasets"))
    if not (folder / "PROTEINS.zip").exists():
        pytest.skip(f"no benchmark data sets at {folder}; set ASAPOOL_DATA to their folder to run this test")
    return folder
