"""`asapool report`, and the reports that train, cv and compare leave by themselves."""

import pytest

from asapool.errors import CheckpointError, WriteError
from tests.cli.commands import call

SMALL = ("synthetic:cycles?graphs=30&nodes=6", "--hidden", 4, "--epochs", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that left its report."""
    folder = tmp_path_factory.mktemp("run") / "run"
    assert call("train", *SMALL, "--out", folder).exit_code == 0
    return folder


def test_train_leaves_a_report_unless_switched_off(folder, tmp_path):
    assert "synthetic:cycles: asap" in (folder / "report.html").read_text()
    assert call("train", *SMALL, "--out", tmp_path / "quiet", "--no-report").exit_code == 0
    assert not (tmp_path / "quiet" / "report.html").exists()


@pytest.mark.parametrize("command", [("cv",), ("compare", "--methods", "asap,mlp")])
def test_cross_validations_leave_one_too(command, tmp_path):
    name, *more = command
    assert call(name, *SMALL, *more, "--folds", 3, "--out", tmp_path / "cv").exit_code == 0
    assert "Spread over folds and seeds" in (tmp_path / "cv" / "report.html").read_text()
    assert call(name, *SMALL, *more, "--folds", 3, "--out", tmp_path / "cv2", "--no-report").exit_code == 0
    assert not (tmp_path / "cv2" / "report.html").exists()


def test_a_report_can_be_written_again_elsewhere_and_the_same(folder, tmp_path):
    output = call("report", folder, "-o", tmp_path / "r.html")
    assert output.stdout == f"report  {tmp_path / 'r.html'}\n"
    assert (tmp_path / "r.html").read_text() == (folder / "report.html").read_text()


def test_a_report_that_cannot_be_written_does_not_spoil_the_run(tmp_path, monkeypatch):
    def full(folder, **options):
        raise WriteError(f"{folder}/report.html: cannot be written (No space left on device)")

    monkeypatch.setattr("asapool.reports.write_report", full)
    output = call("train", *SMALL, "--out", tmp_path / "run")
    assert output.exit_code == 0
    assert "the report is missing or incomplete" in output.stderr
    assert "test accuracy" in output.stdout


def test_a_folder_that_holds_nothing_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="contains neither a run"):
        call("report", tmp_path)
