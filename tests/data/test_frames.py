"""Data frames as sources: they are read as a table of the same content in a file."""

import numpy as np
import pytest

import asapool
from asapool.data import load, read
from asapool.errors import DataError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("rdkit")
COLUMNS = {
    "smiles": ["CCO", "CCN", "CCC", "c1ccccc1"],
    "compound": ["a", "b", "c", "d"],
    "pH": [7.0, None, 6.0, 5.5],
    "logS": [0.5, -1.5, None, 2.0],
}
OPTIONS = {"target": "logS", "task": "regression", "descriptors": "pH", "labels": "optional"}


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_is_read_as_the_file_with_its_content(tmp_path, library):
    frame = library.DataFrame(COLUMNS)
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "m.csv", index=False)
    graphs, expected = load(frame, **OPTIONS), load(tmp_path / "m.csv", **OPTIONS)
    for name in ("x", "ptr", "col", "edge_attr", "y", "descriptors"):
        np.testing.assert_array_equal(getattr(graphs, name), getattr(expected, name))
    assert np.isnan(graphs.y).sum() == np.isnan(graphs.descriptors).sum() == 1
    assert (graphs.ids, graphs.recipe, graphs.target) == (expected.ids, expected.recipe, expected.target)


@pytest.mark.parametrize("values", [[1, 0, 1], [True, False, True], [1.0, 0.0, 1.0], ["1", "0", "1"]])
def test_classes_of_any_type(values):
    graphs = load(pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "label": values}))
    assert graphs.y.tolist() == [1, 0, 1]


def test_every_missing_value_of_pandas_is_missing():
    gaps = pd.DataFrame({"smiles": ["CCO", "CCN", "CCC", "CC", "CO"], "y": ["a", "b", pd.NA, None, np.nan]})
    reading = read(gaps, labels="optional")
    assert reading.graphs.y.tolist() == [0, 1, -1, -1, -1]
    assert reading.unlabelled == 3
    whole = pd.DataFrame({"smiles": ["CCO", "CCN", "CCC"], "y": pd.array([1, 2, None], dtype="Int64")})
    assert load(whole, labels="optional").y.tolist() == [0, 1, -1]


def test_an_index_with_a_name_is_a_column():
    frame = pd.DataFrame(COLUMNS).set_index("compound")
    assert load(frame, **OPTIONS).ids == ("a", "b", "c", "d")
    assert load(frame.rename_axis(None), **OPTIONS).ids == ("1", "2", "3", "4")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"smiles": ["CCO", "C(C", "CCC"], "y": [0, 1, 1]}), r"data frame, line 2: 'C\(C' is not SMILES"),
        (pd.DataFrame({"formula": ["C2H6O"], "y": [0]}), r"data frame: no column is called smiles .*smiles=NAME"),
        (
            pd.DataFrame([["CCO", 0, 1]], columns=["smiles", "y", "y"]),
            "data frame: two columns are called 'y'",
        ),
        (pd.DataFrame({"smiles": [], "y": []}), r"data frame: there are column names but no rows"),
        (pd.DataFrame({"smiles": ["CCO", None], "y": [0, 1]}), r"data frame, line 2: the SMILES is empty"),
        (
            pd.DataFrame({0: ["CCO", "CC"], 1: [0, 1]}),
            r"data frame: no column is called smiles .*the columns are '0', '1'",
        ),
        (pl.LazyFrame({"smiles": ["CCO", "CC"], "y": [0, 1]}), r"a LazyFrame has no rows yet\. Give .* collect\(\)"),
    ],
)
def test_frames_that_cannot_be_read(frame, words):
    with pytest.raises(DataError, match=words):
        load(frame)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_model_predicts_a_frame_with_its_descriptors(tmp_path, library):
    labelled = pd.DataFrame(COLUMNS).dropna(subset="logS")
    model = asapool.ASAPRegressor(hidden=8, epochs=1, validation_fraction=0, random_state=0)
    model.fit(load(labelled, **OPTIONS)).save(tmp_path / "model.safetensors")
    trained = asapool.load_model(tmp_path / "model.safetensors")
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "m.csv", index=False)
    expected = trained.predict(tmp_path / "m.csv")
    without = {name: values for name, values in COLUMNS.items() if name != "logS"}
    np.testing.assert_array_equal(trained.predict(library.DataFrame(without)), expected)
    with pytest.raises(DataError, match="there is no column 'pH', a descriptor that the model reads"):
        trained.predict(library.DataFrame({"smiles": ["CCO"], "name": ["a"]}))


@pytest.mark.parametrize("library", [pd.Series, pl.Series, np.array])
def test_a_column_of_smiles_is_a_source(library):
    graphs = load(library(["CCO", "CC"]), labels="ignored")
    assert graphs.source_text == ("CCO", "CC")
