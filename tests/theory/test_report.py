"""All checks together, and each misprint by itself."""

import json
from dataclasses import replace

import pytest
import torch

from asapool.theory import claims
from asapool.theory.misprints import MISPRINTS
from asapool.theory.report import KNOWN_TO_FAIL, one_thread, power_reaches


@pytest.mark.parametrize("misprint", MISPRINTS, ids=lambda misprint: misprint.check.__name__)
def test_the_slip_is_there(misprint):
    assert misprint.check() is True


def test_verdicts_are_the_documented_ones(report):
    assert {claim.name: claim.verdict for claim in report.claims} == {
        "Lemma 1": "holds",
        "Lemma 2": "fails",
        "Lemma 3": "holds as corrected",
        "Lemma 4": "holds as corrected",
        "Lemma 5": "holds",
        "Theorem 2": "holds as corrected",
        "Lemma 6": "holds",
        "Theorem 3": "holds",
        "Operators": "holds",
        "Connectedness": "holds",
        "RF^edge": "holds as corrected",
        "RF^edge of DiffPool": "fails",
        "RF^node": "holds as corrected",
        "Theorem 1a": "holds as corrected",
        "Theorem 1b": "holds as corrected",
        "Proposition 1": "holds as corrected",
        "Graph powers": "holds as corrected",
    }
    assert report.sound


def test_a_verdict_follows_the_numbers(report):
    """One tree that disagrees is enough to fail a claim, and a claim that fails is enough for the report."""
    wrong = [replace(row, best=row.best + 1) if (row.N, row.h) == (6, 4) else row for row in report.trees]
    assert {c.name: c.verdict for c in claims.lemma_claims(wrong)}["Lemma 4"] == "fails"
    jump = [replace(row, step=2) if (row.N, row.h) == (6, 4) else row for row in report.trees]
    assert {c.name: c.verdict for c in claims.lemma_claims(jump)}["Lemma 1"] == "fails"
    odd = [replace(row, mismatches=1) if row.N == 5 else row for row in report.selections]
    result = {c.name: c.verdict for c in claims.theorem_claims(odd)}
    assert (result["Operators"], result["Theorem 2"]) == ("fails", "fails")
    broken = replace(report, claims=(*report.claims, claims.CheckedClaim("x", "y", "fails", "z")))
    assert not broken.sound
    assert not replace(report, misprints=(replace(report.misprints[0], confirmed=False),)).sound
    assert KNOWN_TO_FAIL == ("Lemma 2", "RF^edge of DiffPool")


def test_scoring_verdicts_follow_the_training(report):
    lucky = [replace(run, accuracy=0.7) if run.layer == "gcn" else run for run in report.trainings]
    assert claims.scoring_claims(0.0, (True, True), lucky)[0].verdict == "fails"
    assert claims.scoring_claims(1e-3, (True, True), report.trainings)[1].verdict == "fails"
    assert claims.symmetry_claims(1e-3, True, report.powers)[0].verdict == "fails"
    assert claims.symmetry_claims(0.0, True, [(2, 1, 2, 5, 6)])[1].verdict == "fails"


def test_powers():
    assert power_reaches(2) == [(1, 1, 1, 3, 3), (1, 2, 1, 5, 5), (2, 1, 2, 4, 6), (2, 2, 2, 6, 10)]


def test_the_report_is_plain_json(report):
    back = json.loads(json.dumps(report.to_dict()))
    assert back["sound"] is True
    assert back["claims"][0]["verdict"] == "holds"
    assert back["fields"]["topk"] == {"node": 0, "span": 1, "edge": 1, "whole": False}


def test_progress_is_reported(report, progress):
    assert progress[0] == ("all trees", 1 / report.max_nodes)
    assert progress[-1] == ("done", 1.0)
    assert all(0 <= share <= 1 for _, share in progress)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError), one_thread():
            _ = 1 / (torch.get_num_threads() - 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_public_names():
    from asapool import theory

    assert set(theory.__all__) >= {"balanced_starlike_tree", "k_star", "optimum_nodes", "receptive_field"}
    assert dir(theory) == sorted(theory.__all__)
    assert all(callable(getattr(theory, name)) for name in theory.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = theory.nothing
