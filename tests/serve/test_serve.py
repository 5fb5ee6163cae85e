"""asapool serve: real requests to a real application, mistakes of clients, and the page in a real browser."""

import json
import random
import threading
import time
from contextlib import suppress

import httpx
import numpy as np
import psutil
import pytest

import asapool
from asapool.data import load
from asapool.models import ModelConfig, build, checkpoint
from asapool.models.batches import edge_channels
from asapool.serve.settings import ServeSettings
from benchmarks.service import running_service
from tests.graphs import with_random_parameters
from tests.serve.services import serving

pytest.importorskip("fastapi")
pytest.importorskip("rdkit")
SMILES = ["CCO", "c1ccccc1C(=O)O", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "O=[N+]([O-])c1ccccc1"]
KEY = "correct horse battery staple"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A model file with random weights for molecules."""
    graphs = load(SMILES)
    model = build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=0, edge_channels=edge_channels(graphs))
    file = tmp_path_factory.mktemp("serve") / "model.safetensors"
    classes = ["<script>alert(1)</script>", "b"]
    with_random_parameters(model, seed=3)
    checkpoint.save(file, model, classes=classes, recipe=graphs.recipe | {"classes": classes})
    return file


@pytest.fixture(scope="module")
def client(path):
    with serving(ServeSettings(model=str(path), max_bytes=20_000, max_graphs=50, max_nodes=40)) as made:
        yield made


def test_predictions_are_those_of_the_model(path, client):
    expected = asapool.load_model(path).predict_proba(SMILES)
    answer = client.post("/predict", json={"smiles": SMILES, "ids": list("wxyz")}).json()["results"]
    assert [row["id"] for row in answer] == list("wxyz")
    np.testing.assert_allclose([row["p(b)"] for row in answer], expected[:, 1], rtol=1e-5, atol=1e-9)
    assert client.post("/predict", json={"smiles": "CCO"}).json()["results"][0]["p(b)"] == answer[0]["p(b)"]
    table = "name,SMILES\nfirst,CCO\nsecond,c1ccccc1C(=O)O\n"
    rows = client.post("/predict", json={"csv": table}).json()["results"]
    assert [row["id"] for row in rows] == ["first", "second"]
    assert rows[1]["p(b)"] == answer[1]["p(b)"]
    for other in (table.replace(",", ";"), "sep=;\r\n" + table.replace(",", ";"), table.replace(",", "\t")):
        assert client.post("/predict", json={"csv": other}).json()["results"] == rows


def test_a_molecule_that_cannot_be_read_costs_only_its_row(client):
    rows = client.post("/predict", json={"smiles": ["CCO", "xx", "C" * 41, "C" * 4001]}).json()["results"]
    assert "predicted" in rows[0]
    assert "not SMILES" in rows[1]["error"]
    assert rows[2]["error"] == "the molecule has 41 atoms; at most 40 are allowed"
    assert rows[3]["error"] == "the SMILES has 4001 characters; at most 4000 are allowed"
    assert rows[3]["smiles"] == "C" * 4001
    assert "error" in client.post("/predict", json={"smiles": "xx"}).json()["results"][0]
    rows = client.post("/predict", json={"smiles": ["CCO", None]}).json()["results"]
    assert ("predicted" in rows[0], "error" in rows[1]) == (True, True)


def test_an_explanation_is_of_the_first_molecule_or_refused(client):
    answer = client.post("/explain", json={"smiles": ["xx", "CCO"]})
    assert answer.status_code == 422
    assert "'xx' is not SMILES" in answer.json()["error"]


def test_requests_that_wait_go_through_the_model_together(client):
    results = {}

    def ask(k):
        results[k] = client.post("/predict", json={"smiles": SMILES[k % 4], "ids": [k]}).json()["results"][0]

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(results[k]["id"] == str(k) and results[k]["smiles"] == SMILES[k % 4] for k in range(24))
    assert "asapool_graphs_total" in client.get("/metrics").text


def test_embeddings_and_explanations(path, client):
    model = asapool.load_model(path)
    rows = client.post("/embed", json={"smiles": ["CCO", "xx"]}).json()["results"]
    np.testing.assert_allclose(rows[0]["embedding"], model.embed("CCO")[0], atol=1e-4)
    assert "error" in rows[1]
    answer = client.post("/explain", json={"smiles": "c1ccccc1O", "target": "b"}).json()
    assert answer["hierarchy"]["nodes"] == 7
    last = answer["pictures"][-1]
    assert last["title"] == "Clusters, level 2"
    assert last["text"].startswith("2 kept clusters")
    assert all("<script" not in p["svg"] for p in answer["pictures"])
    card = client.get("/model").json()
    assert card["method"] == "asap"
    assert not {"file", "source"} & set(card)  # paths on the server
    assert card["classes"][1] == "b"
    assert client.get("/health").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not JSON"),
        (b'{"smiles": NaN}', 400, "NaN"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b"[" * 19_000, 400, "nested"),
        (b"[]", 400, "JSON object"),
        (b"{}", 422, "give one of"),
        (b'{"smile": "C"}', 422, "unknown field"),
        (b'{"smiles": 1}', 422, "list of strings"),
        (b'{"smiles": ["CCO", 1]}', 422, "smiles[1]: expected a string, got 1"),
        (b'{"smiles": []}', 422, "no graph"),
        (b'{"smiles": "C", "ids": ["a", "b"]}', 422, "ids"),
        (json.dumps({"smiles": ["C"] * 51}).encode(), 413, "50 are allowed"),
        (b" " * 30_000, 413, "larger than 20,000 bytes"),
        (b'{"graphs": [{"edges": [[0, 1]], "nodes": 2}]}', 422, "kind 'smiles'"),
        (b'{"graphml": "<!DOCTYPE x><a/>"}', 422, "GraphML"),
        (b'{"graphml": "<graphml"}', 422, "graphml"),
        (b'{"csv": "a,b\\n1,2"}', 422, "SMILES"),
    ],
)
def test_mistakes_have_a_status_and_a_sentence(client, body, status, words):
    answer = client.post("/predict", content=body)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]


def test_every_answer_has_a_policy_and_nothing_comes_back_unescaped(client):
    for answer in (
        client.get("/"),
        client.get("/docs"),
        client.get("/<script>"),
        client.post("/predict", content=b"{"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>alert" not in client.get("/").text
    assert "&lt;script&gt;alert(1)" in client.get("/").text
    assert client.get("/predict").status_code == 405


def test_mutated_requests_never_end_in_an_error_of_the_service(client):
    rng = random.Random(0)
    seeds = [
        b'{"smiles": ["CCO", "c1ccccc1"], "ids": ["a", "b"]}', b'{"csv": "smiles,id\\nCCO,1\\n"}',
        b'{"graphs": [{"id": "g", "edges": [[0, 1], [1, 0]], "features": [[1], [2]]}]}',
        b'{"graphml": "<graphml><graph><node id=\\"0\\"/></graph></graphml>"}',
        b'{"smiles": ["CCO", "CC"], "descriptors": {"pH": [1, null]}, "index": 1}',
    ]  # fmt: skip
    for _ in range(60):
        body = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(body))
            body[place : place + rng.randint(0, 3)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
        answer = client.post(rng.choice(["/predict", "/embed", "/explain"]), content=bytes(body))
        assert answer.status_code < 500, (bytes(body), answer.text)


def test_a_key_opens_the_service(path, tmp_path):
    (tmp_path / "key").write_text(KEY + "\n")
    with serving(ServeSettings(model=str(path), api_key_file=str(tmp_path / "key"))) as client:
        assert client.post("/predict", json={"smiles": "C"}).status_code == 401
        assert client.get("/health").status_code == 200
        for headers in ({"Authorization": f"Bearer {KEY}"}, {"X-API-Key": KEY}):
            assert client.post("/predict", json={"smiles": "C"}, headers=headers).status_code == 200
        assert client.get("/metrics", headers={"X-API-Key": "wrong"}).status_code == 401


def test_the_most_similar_labelled_molecules_stand_beside_an_explanation(path, tmp_path, browser):
    rows = ["CCO,b,<b>ethanol", "c1ccccc1O,b,phenol", "CCCCCCCC,b,octane", "CCN,b,ethylamine"]
    (tmp_path / "known.csv").write_text("smiles,y,name\n" + "\n".join(rows) + "\n")
    with serving(ServeSettings(model=str(path), neighbours=str(tmp_path / "known.csv"))) as client:
        answer = client.post("/explain", json={"smiles": "OCC"}).json()
        first = answer["neighbours"][0]
        assert len(answer["neighbours"]) == 3
        assert first["smiles"] == "CCO"
        assert first["distance"] < 1e-3  # the same molecule, written differently
        distances = [one["distance"] for one in answer["neighbours"]]
        assert distances == sorted(distances)
        page = browser.new_page(viewport={"width": 375, "height": 900})
        page.goto(str(client.base_url))
        page.fill("#text", "OCC")
        page.keyboard.press("Enter")
        page.wait_for_selector("#neighbours img")
        drawn = "[...document.querySelectorAll('#neighbours img')].every(i => i.complete && i.naturalWidth)"
        assert page.evaluate(drawn)
        assert page.locator("#neighbours figure").count() == 3
        assert "<b>ethanol" in page.inner_text("#neighbours figcaption >> nth=0")
        page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (375, "dark")])
def test_the_page_in_a_browser(client, browser, width, scheme):
    address = str(client.base_url)
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    output, asked = [], set()
    page.on("console", lambda message: output.append(message.text))
    page.on("pageerror", lambda error: output.append(str(error)))
    page.on("request", lambda request: asked.add(request.url.split("?")[0]))
    page.goto(address)
    page.focus("#text")
    page.keyboard.insert_text("CC(=O)Oc1ccccc1C(=O)O\n<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#pictures img")
    assert page.locator("#table tbody tr").count() == 2
    assert "not SMILES" in page.inner_text("#table tbody tr:nth-child(2)")
    assert page.evaluate("[...document.querySelectorAll('#pictures img')].every(i => i.complete && i.naturalWidth)")
    with page.expect_download() as held:
        page.click("#download")
    assert held.value.suggested_filename == "predictions.csv"
    page.set_input_files("#file", {"name": "m.csv", "mimeType": "text/csv", "buffer": b"smiles\nCCO\nCCN\nCCC\n"})
    page.locator("#table tbody tr:nth-child(3)").wait_for()
    page.locator("#state").get_by_text("3 predictions").wait_for()
    assert output == []
    assert all(url.startswith((address, "data:")) for url in asked)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_a_killed_worker_costs_no_more_than_its_requests_and_is_replaced(path):
    with running_service(str(path), workers=2) as (address, service):
        before = serving_processes(service)
        before[0].kill()
        answered = sum(ask(address) for _ in range(20))
        assert answered >= 19  # at most the request that the killed worker held
        end = time.monotonic() + 60
        while len(serving_processes(service)) < 2 and time.monotonic() < end:
            time.sleep(0.2)
        after = serving_processes(service)
        assert len(after) == 2
        assert before[0] not in after
        assert ask(address)


def serving_processes(service):
    """The worker processes: all children but the one that tracks shared resources, and those that have died."""
    alive = []
    for process in service.children():
        with suppress(psutil.NoSuchProcess):  # also raised for a zombie, which has no command line any more
            if "spawn_main" in " ".join(process.cmdline()):
                alive.append(process)
    return alive


def ask(address):
    try:
        return httpx.post(f"{address}/predict", json={"smiles": SMILES}, timeout=30).status_code == 200
    except httpx.HTTPError:
        return False
