"""A few hundred mutated files of every kind; `python -m tests.fuzz_inputs 20000` tries more."""

from tests.fuzz_inputs import main


def test_mutated_files_are_read_or_refused_in_a_sentence(capsys):
    assert main(260, seed=7) == 0, capsys.readouterr().out
