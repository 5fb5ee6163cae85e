"""asapool serve with a model that reads descriptors: columns of a table, or values beside the SMILES."""

import numpy as np
import pytest

import asapool
from asapool.data import load
from asapool.errors import CheckpointError, ConfigError
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import edge_channels
from asapool.serve.answers import wanted_of
from asapool.serve.settings import ServeSettings
from tests.graphs import with_random_parameters
from tests.serve.services import serving

pytest.importorskip("fastapi")
pytest.importorskip("rdkit")
TABLE = "id,smiles,pH,dose,label\nethanol,CCO,7,1.5,a\namine,CCN,5,,b\npropane,CCC,6,0.5,a\n"
GIVEN = {"smiles": ["CCO", "CCN", "CCC"], "descriptors": {"dose": [1.5, None, 0.5], "pH": [7, 5, 6]}}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A model file with random weights that reads pH and dose."""
    folder = tmp_path_factory.mktemp("descriptors")
    (folder / "m.csv").write_text(TABLE)
    graphs = load(folder / "m.csv", target="label", descriptors=("pH", "dose"))
    model = build(
        ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0, edge_channels=edge_channels(graphs),
        graph_channels=2,
    )  # fmt: skip
    with_random_parameters(model, seed=1)
    model.descriptors.fit(graphs.descriptors)
    checkpoint.save(folder / "model.safetensors", model, classes=["a", "b"], recipe=graphs.recipe)
    return folder / "model.safetensors"


@pytest.fixture(scope="module")
def client(path):
    with serving(ServeSettings(model=str(path))) as made:
        yield made


def test_the_values_beside_the_smiles_and_in_a_table_are_read_alike(path, client):
    expected = asapool.load_model(path).predict_proba(path.parent / "m.csv")
    assert np.ptp(expected[:, 1]) > 0.01
    for body in (GIVEN, {"csv": TABLE}):
        rows = client.post("/predict", json=body).json()["results"]
        np.testing.assert_allclose([row["p(b)"] for row in rows], expected[:, 1], rtol=1e-5)
    one = {"smiles": "CCO", "descriptors": {"pH": 7, "dose": 1.5, "not read": "x"}}
    assert client.post("/predict", json=one).json()["results"][0]["p(b)"] == rows[0]["p(b)"]
    other = {"smiles": "CCO", "descriptors": {"pH": 4, "dose": 1.5}}
    assert client.post("/predict", json=other).json()["results"][0]["p(b)"] != rows[0]["p(b)"]


def test_a_molecule_that_cannot_be_read_keeps_the_values_of_the_others_in_place(client):
    rows = client.post("/predict", json={"csv": TABLE}).json()["results"]
    with_gap = {"smiles": ["CCO", "xx", "CCC"], "descriptors": {"dose": [1.5, 9, 0.5], "pH": [7, 9, 6]}}
    answer = client.post("/predict", json=with_gap).json()["results"]
    assert [row.get("p(b)") for row in answer] == [rows[0]["p(b)"], None, rows[2]["p(b)"]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"smiles": ["CCO", "C"]}, """the model reads the descriptor 'pH': send its value for every SMILES, as in """
         """"descriptors": {"pH": [null, null]}, or a csv with that column"""),
        ({"smiles": "CCO", "descriptors": {"pH": 7}}, "the model reads the descriptor 'dose'"),
        ({"smiles": "CCO", "descriptors": {"pH": [7, 8], "dose": 1}},
         "descriptors: 'pH' has 2 values for 1 SMILES. Give one per SMILES"),
        ({"smiles": "CCO", "descriptors": {"pH": "x", "dose": 1}},
         "descriptors[0]: expected a finite number for the descriptor 'pH', got 'x'"),
        ({"csv": "smiles,pH\nCCO,7\n"}, "csv: there is no column 'dose', a descriptor that the model reads. Add it"),
        ({"csv": "smiles,pH,dose\nCCO,7,1\nCCO,7,much\n"}, "csv, row 2: expected a finite number"),
        ({"csv": "CCO\nCCN\n"}, "csv: there is no column 'pH'"),
        ({"csv": "smiles,pH,dose,pH\nCCO,7,1,2\n"}, "csv: two columns are called 'pH'. Rename one of them"),
        ({"csv": "smiles;pH;dose\nCCO;7,5;1\n"}, "csv, row 1: expected a finite number for the descriptor 'pH', got "
         "'7,5'. Write it with a decimal point"),
    ],
)  # fmt: skip
def test_values_that_are_missing_or_wrong_are_refused(client, body, words):
    answer = client.post("/predict", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(words)


def test_any_graph_of_a_request_can_be_explained(client):
    third = {"smiles": "CCC", "descriptors": {"pH": 6, "dose": 0.5}}
    expected = client.post("/explain", json=third).json()["hierarchy"]
    for body in (GIVEN, {"csv": TABLE}):
        hierarchy = client.post("/explain", json=body | {"index": 2}).json()["hierarchy"]
        assert hierarchy["probability"] == expected["probability"]
    for wrong in (3, -1, True, "0", None):
        answer = client.post("/explain", json=GIVEN | {"index": wrong})
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("index must be a whole number from 0 to 2, got ")


def test_the_page_explains_a_row_of_a_table_with_its_values(client, browser):
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto(str(client.base_url))
    assert "the columns pH, dose" in page.inner_text("#hint")
    page.set_input_files("#file", {"name": "m.csv", "mimeType": "text/csv", "buffer": TABLE.encode()})
    page.locator("#state").get_by_text("3 predictions").wait_for()
    page.wait_for_selector("#pictures img")  # of the first row
    with page.expect_response("**/explain") as held:
        page.click("#table tbody tr:nth-child(3) button")
    asked = client.post("/explain", json={"csv": TABLE, "index": 2}).json()
    assert held.value.json()["hierarchy"]["probability"] == asked["hierarchy"]["probability"]
    page.fill("#text", "CCO")
    page.keyboard.press("Enter")
    page.locator("#error").get_by_text("csv: there is no column 'pH'").wait_for()
    page.fill("#text", "smiles\tpH\tdose\nCCC\t6\t0.5")  # as copied from a spreadsheet
    page.keyboard.press("Enter")
    page.locator("#state").get_by_text("1 prediction").wait_for()
    page.close()


def test_a_coverage_that_the_model_does_not_support_is_refused(path):
    assert not wanted_of(checkpoint.load(path), None).uncertainty
    with pytest.raises(CheckpointError, match="has no uncertainty data"):
        wanted_of(checkpoint.load(path), 0.9)


def test_the_coverage_is_that_of_the_settings_and_stated(tmp_path):
    rng = np.random.default_rng(0)
    smiles = ["C" * k + end for k in range(1, 16) for end in ("O", "N", "F", "Cl")]
    model = asapool.ASAPClassifier("histogram", validation_fraction=0.5, random_state=0)
    model.fit(smiles, rng.integers(0, 2, 60)).save(tmp_path / "model.safetensors")
    for coverage, stated in ((None, 0.9), (0.6, 0.6)):
        settings = ServeSettings(model=str(tmp_path / "model.safetensors"), coverage=coverage)
        with serving(settings) as client:
            answer = client.post("/predict", json={"smiles": smiles}).json()
            expected = asapool.load_model(settings.model).uncertainty(smiles, coverage=stated)["set"]
            assert answer["coverage"] == client.get("/model").json()["conformal"] == stated
            assert [row["set"] for row in answer["results"]] == list(expected)
            assert f"{stated:.0%}" in client.get("/").text
    for wrong in (0, 1, 2):
        with pytest.raises(ConfigError, match="coverage must lie between 0 and 1"):
            wanted_of(checkpoint.load(tmp_path / "model.safetensors"), wrong)
