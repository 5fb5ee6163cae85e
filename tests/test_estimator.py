"""ASAPClassifier and ASAPRegressor keep scikit-learn's contract, whatever graphs come as."""

import joblib
import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

import asapool
from asapool import ASAPClassifier, ASAPRegressor
from asapool.data import load
from asapool.errors import CheckpointError, ConfigError, DataError, InputError
from asapool.estimator.inputs import pack, with_values
from asapool.models import checkpoint
from asapool.training.predictions import predict
from asapool.training.trust import Trust, Uncertainty

QUICK = {"hidden": 8, "epochs": 3, "batch_size": 16, "random_state": 0}
RINGS = [f"C1{'C' * k}C1" for k in range(1, 9)] * 2
CHAINS = [f"CC{'C' * k}C" for k in range(1, 9)] * 2


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=40&nodes=9")


@pytest.fixture(scope="module")
def fitted(graphs):
    return ASAPClassifier(**QUICK).fit(graphs)


def test_it_learns_rings_from_chains():
    y = np.array(["ring"] * 16 + ["chain"] * 16)
    asap = ASAPClassifier(hidden=16, dropout=0.0, validation_fraction=0, random_state=0).fit(RINGS + CHAINS, y)
    assert asap.score(RINGS + CHAINS, y) == 1.0
    assert asap.predict(["C1CCCC1", "CCCCC"]).tolist() == ["ring", "chain"]


def test_classes_probabilities_and_answers_fit_together(graphs, fitted):
    p = fitted.predict_proba(graphs)
    assert fitted.classes_.tolist() == ["cycle", "path"]
    assert p.shape == (40, 2)
    assert np.allclose(p.sum(1), 1)
    assert (fitted.classes_[p.argmax(1)] == fitted.predict(graphs)).all()
    assert (fitted.n_features_in_, len(fitted.history_)) == (3, 3)


@pytest.mark.parametrize("y", [[3, 7] * 20, ["b", "a"] * 20, [True, False] * 20], ids=["numbers", "words", "booleans"])
def test_any_labels_come_back_as_they_were(graphs, y):
    asap = ASAPClassifier(**QUICK).fit(graphs, y)
    assert asap.classes_.tolist() == sorted(set(y))
    assert set(asap.predict(graphs)) <= set(y)
    assert asap.predict(graphs).dtype == np.asarray(y).dtype


def test_every_form_of_graphs_gives_the_same_model(graphs, fitted):
    as_data = ASAPClassifier(**QUICK).fit(list(graphs), graphs.y)
    assert np.allclose(as_data.predict_proba(graphs), fitted.predict_proba(graphs), atol=1e-6)
    as_networkx = ASAPClassifier(**QUICK).fit(list(graphs.iter_networkx()))
    assert as_networkx.classes_.tolist() == ["cycle", "path"]
    assert np.allclose(as_networkx.predict_proba(graphs), fitted.predict_proba(graphs), atol=1e-6)
    assert np.allclose(fitted.predict_proba(list(graphs)), fitted.predict_proba(graphs), atol=1e-6)


def test_degrees_of_new_graphs_get_the_columns_of_the_old():
    train = [nx.star_graph(k) for k in (3, 4, 5)] * 4 + [nx.path_graph(k) for k in (3, 4, 5)] * 4
    asap = ASAPClassifier(**QUICK).fit(train, [0] * 12 + [1] * 12)
    assert asap.predict_proba([nx.star_graph(9), nx.path_graph(2)]).shape == (2, 2)


def test_a_seed_makes_fits_equal_and_its_absence_does_not(graphs, fitted):
    again = ASAPClassifier(**QUICK).fit(graphs)
    assert np.array_equal(again.predict_proba(graphs), fitted.predict_proba(graphs))
    free = [ASAPClassifier(**{**QUICK, "random_state": None}).fit(graphs).predict_proba(graphs) for _ in range(2)]
    assert not np.array_equal(*free)
    assert np.array_equal(
        again.fit(graphs).predict_proba(graphs), fitted.predict_proba(graphs)
    )  # fitting again starts anew


def test_clone_and_parameters():
    asap = ASAPClassifier("topk", hidden=16, model_options={"conv": "gin"})
    copy = clone(asap)
    assert copy.get_params() == asap.get_params()
    assert copy.get_params()["method"] == "topk"
    assert copy.set_params(hidden=4).hidden == 4
    assert asap.hidden == 16


def test_cross_validation_search_and_pipeline(graphs):
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(ASAPClassifier(**QUICK), graphs, graphs.y, cv=folds, error_score="raise")
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
    steps = Pipeline([("same", FunctionTransformer()), ("asap", ASAPClassifier(**QUICK))])
    search = GridSearchCV(steps, {"asap__hidden": [4, 8]}, cv=folds, error_score="raise", scoring="roc_auc")
    search.fit(RINGS + CHAINS, [1] * 16 + [0] * 16)
    assert search.best_params_["asap__hidden"] in (4, 8)
    assert search.predict(["C1CCCC1"]).shape == (1,)


def test_joblib_keeps_a_fitted_one(graphs, fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "asap.joblib")
    again = joblib.load(tmp_path / "asap.joblib")
    assert np.array_equal(again.predict_proba(graphs), fitted.predict_proba(graphs))
    assert again.fit(graphs).best_epoch_ == fitted.best_epoch_


def test_settings_reach_model_and_training(graphs):
    asap = ASAPClassifier(
        "none", hidden=4, epochs=2, class_weight="balanced", model_options={"conv": "sage"}, train_options={"clip": 1.0}
    ).fit(graphs)
    assert asap.model_.config.conv == "sage"
    assert asap.model_.config.method == "none"
    assert len(asap.history_) == 2


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"class_weight": "equal"}, ConfigError, "class_weight must be None or 'balanced'"),
        ({"method": "best"}, ConfigError, "model.method must be one of"),
        ({"epochs": 0}, ConfigError, "train.epochs"),
        ({"validation_fraction": 1.0}, ConfigError, "validation_fraction"),
        ({"validation_fraction": None}, ConfigError, r"validation_fraction must lie in \[0, 1\), got None"),
        ({"validation_fraction": "0.1"}, ConfigError, "validation_fraction must lie in"),
        ({"train_options": {"speed": 1}}, ConfigError, "train.speed is not a setting"),
        (
            {"epochs": 2, "train_options": {"epochs": 5}},
            ConfigError,
            "epochs is given twice: epochs=2 and train_options=",
        ),
    ],
)
def test_wrong_settings_are_refused_when_fitting(graphs, change, error, says):
    with pytest.raises(error, match=says):
        ASAPClassifier(**{**QUICK, **change}).fit(graphs)


def test_wrong_data_are_refused(graphs, fitted):
    for X, y, error, says in (
        (graphs, [0, 1], InputError, "one class per graph"),
        (graphs, [1] * 40, InputError, "at least two classes"),
        ([], None, DataError, "an empty list"),
        ("CCO", None, DataError, "got str"),
        (["CCO", "no molecule"], [0, 1], DataError, r"X\[1\]: 'no molecule'"),
    ):
        with pytest.raises(error, match=says):
            ASAPClassifier(**QUICK).fit(X, y)
    with pytest.raises(InputError, match="36 node features, but ASAPClassifier was fitted with 3"):
        fitted.predict(["CCO"])


@pytest.mark.parametrize("estimator", [ASAPClassifier(), ASAPRegressor()], ids=["classifier", "regressor"])
def test_every_method_that_needs_a_fit_raises_not_fitted_error_before(graphs, tmp_path, estimator):
    for call in (estimator.predict, estimator.transform, lambda X: estimator.score(X, graphs.y)):
        with pytest.raises(NotFittedError):
            call(graphs)
    with pytest.raises(NotFittedError):
        estimator.get_feature_names_out()
    with pytest.raises(NotFittedError):
        estimator.save(tmp_path / "m.safetensors")


def test_constant_measured_values_are_refused_unless_another_task_varies(graphs):
    says = r"the values in y are all equal, so there is nothing to learn\. Add graphs with other values"
    with pytest.raises(InputError, match=says):
        ASAPRegressor(**QUICK).fit(graphs, np.ones(40))
    with pytest.raises(InputError, match=says):
        ASAPRegressor(**QUICK).fit(graphs, np.stack([np.ones(40), np.where(np.arange(40) % 2, 3.0, np.nan)], axis=1))
    two = np.stack([np.ones(40), np.arange(40.0)], axis=1)
    assert ASAPRegressor(**QUICK).fit(graphs, two).predict(graphs).shape == (40, 2)
    measured = with_values(graphs, np.repeat([1.0, 2.0], 20))
    with pytest.raises(InputError, match="the measured values in X are all equal"):
        ASAPRegressor(**QUICK).fit(measured[:20])


def test_features_of_another_meaning_are_refused_though_their_number_fits(graphs, fitted):
    path = nx.path_graph(4)
    nx.set_node_attributes(path, dict(enumerate("ABCA")), "label")
    other = load([path], labels="optional")
    assert other.num_features == graphs.num_features
    with pytest.raises(InputError, match=r"made with features = 'labels', but .* with 'degree'\. Load .*recipe_"):
        fitted.predict(other)
    again = load([nx.path_graph(4)], labels="optional", recipe=fitted.recipe_)
    assert fitted.predict(again).shape == (1,)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        ([0, 1] * 19 + [0, None], r"y\[39\]: expected a class, got None"),
        (["a", "b"] * 19 + [float("nan"), "a"], r"y\[38\]: expected a class, got nan"),
        (np.array([0.0, 1.0] * 19 + [np.nan, 1.0]), r"y\[38\]: expected a class, got nan"),
        (np.linspace(0, 1, 40), r"y must be classes .*, got \[0.0, 0.0256.* Bin measured values into classes"),
    ],
    ids=["None", "nan among words", "nan among numbers", "measured"],
)
def test_classes_that_are_missing_or_measured_are_refused(graphs, y, says):
    with pytest.raises(InputError, match=says):
        ASAPClassifier(**QUICK).fit(graphs, y)


@pytest.mark.parametrize("tasks", [2, 3])
def test_scikit_learn_scores_the_probabilities_of_several_tasks(graphs, tasks):
    y = np.stack([graphs.y, 1 - graphs.y, graphs.y], axis=1)[:, :tasks]
    scores = cross_val_score(ASAPClassifier("histogram", random_state=0), graphs, y, cv=2, scoring="roc_auc")
    assert (scores > 0.5).all()


def test_columns_of_pandas_are_taken_and_wider_tables_refused():
    pd = pytest.importorskip("pandas")
    y = pd.Series([1] * 16 + [0] * 16, dtype=object)
    table = pd.DataFrame({"smiles": RINGS + CHAINS})
    asap = ASAPClassifier(**QUICK).fit(table, y)
    same = ASAPClassifier(**QUICK).fit(RINGS + CHAINS, [1] * 16 + [0] * 16)
    assert np.array_equal(asap.predict_proba(table["smiles"]), same.predict_proba(RINGS + CHAINS))
    assert asap.classes_.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"y\[1\]: expected a class, got <NA>"):
        asap.fit(["C", "CC"], pd.Series([1, None], dtype="Int64"))
    with pytest.raises(DataError, match=r"graphs, got a table of 2: 'smiles', 'logp'\. Give one of them"):
        asap.predict(table.assign(logp=0.0))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_beside_the_smiles_are_descriptors(library, tmp_path):
    frame = pytest.importorskip(library).DataFrame
    rng = np.random.default_rng(0)
    y = rng.permutation([0, 1] * 16)
    columns = {"SMILES": (RINGS + CHAINS), "pH": y + rng.normal(0, 0.1, 32), "acid": (y > 0).tolist()}
    asap = ASAPClassifier("asap+", **QUICK | {"epochs": 60}, lr=0.02).fit(frame(columns), y)
    assert asap.recipe_["descriptors"]["columns"] == ["pH", "acid"]
    assert asap.score(frame(columns), y) > 0.9  # the molecules alone say nothing about y
    p = asap.predict_proba(frame(columns))
    turned = frame({"acid": columns["acid"], "more": ["text"] * 32, "pH": columns["pH"], "SMILES": columns["SMILES"]})
    assert np.array_equal(asap.predict_proba(turned), p)
    asap.save(tmp_path / "model.safetensors")
    assert np.array_equal(asapool.load_model(tmp_path / "model.safetensors").predict_proba(frame(columns)), p)
    with pytest.raises(DataError, match="there is no column 'acid', a descriptor that the model reads"):
        asap.predict(frame({"SMILES": ["CCO"], "pH": [1.0]}))
    with pytest.raises(DataError, match="the model needs the descriptor 'pH', and a list of SMILES has no columns"):
        asap.predict(["CCO"])


def test_an_array_of_several_columns_is_refused_with_the_way_to_keep_their_names():
    frame = pytest.importorskip("pandas").DataFrame({"smiles": RINGS + CHAINS, "pH": np.linspace(0, 1, 32)})
    columns = ColumnTransformer([("all", "passthrough", ["smiles", "pH"])], verbose_feature_names_out=False)
    model, y = Pipeline([("columns", columns), ("asap", ASAPClassifier("asap+", **QUICK))]), [1] * 16 + [0] * 16
    with pytest.raises(DataError, match=r"got an array of 2, which have no names\. .*set_output\(transform='pandas'\)"):
        model.fit(frame, y)
    columns.set_output(transform="pandas")
    assert model.fit(frame, y)[-1].recipe_["descriptors"]["columns"] == ["pH"]


def test_columns_that_cannot_be_descriptors_are_refused():
    frame = pytest.importorskip("pandas").DataFrame({"smiles": ["CCO", "CC"], "name": [None, "ethane"]})
    with pytest.raises(
        DataError, match=r"X: the column 'name' holds text, such as 'ethane', not numbers\. Leave it out"
    ):
        ASAPClassifier(**QUICK).fit(frame, [0, 1])
    with pytest.raises(
        DataError, match=r"or a column 'smiles' beside columns of numbers .* got a table of 2: 'a', 'name'"
    ):
        ASAPClassifier(**QUICK).fit(frame.rename(columns={"smiles": "a"}), [0, 1])
    numbers = frame.assign(name=[1.0, 2.0])
    with pytest.raises(ConfigError, match="the method 'wl' does not use descriptors"):
        ASAPClassifier("wl").fit(numbers, [0, 1])
    with pytest.raises(
        DataError, match="X: the column 'day' holds Timestamp objects, such as '2020-01-01 00:00:00', not"
    ):
        ASAPClassifier(**QUICK).fit(numbers.assign(day=np.array(["2020-01-01"] * 2, "datetime64[s]")), [0, 1])
    with pytest.raises(DataError, match=r"X: two columns are called 'name'\. Rename one of them"):
        ASAPClassifier(**QUICK).fit(numbers[["smiles", "name", "name"]], [0, 1])
    with pytest.raises(
        DataError, match=r"line 2: 'xx' is not SMILES that RDKit can read\. 1 of 2 cannot be read: leave"
    ):
        ASAPClassifier(**QUICK).fit(numbers.assign(smiles=["CCO", "xx"]), [0, 1])
    with pytest.raises(DataError, match=r"only one class\. Give y"):
        ASAPClassifier(**QUICK).fit(numbers)


def test_a_frame_with_numbers_as_column_names_and_repeated_ids_in_its_index():
    pd = pytest.importorskip("pandas")
    columns = {"smiles": RINGS + CHAINS, 0: np.arange(32.0), 1: pd.array([True, None] * 16, dtype="boolean")}
    frame = pd.DataFrame(columns, index=pd.Index(["a", "b"] * 16, name="id"))  # as after sampling with replacement
    asap = ASAPClassifier("asap+", **QUICK).fit(frame, [0, 1] * 16)
    assert asap.recipe_["descriptors"]["columns"] == ["0", "1"]
    assert asap.predict(frame).shape == (32,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_row_of_a_frame_is_explained_with_its_descriptors(library):
    frame = pytest.importorskip(library).DataFrame({"smiles": RINGS + CHAINS, "pH": np.arange(32.0)})
    asap = ASAPClassifier("asap+", **QUICK).fit(frame, [0, 1] * 16)
    hierarchy = asapool.explain(asap, frame, 20, importance=["gradient"])
    assert np.allclose(hierarchy.probability, asap.predict_proba(frame)[20], atol=1e-6)


@pytest.mark.parametrize("options", [{"rdkit_descriptors": True}, {"edge_features": "extended"}])
def test_lists_of_smiles_get_everything_that_the_model_was_trained_on(tmp_path, options):
    rows = "".join(f"{text},{k % 2}\n" for k, text in enumerate(RINGS + CHAINS))
    (tmp_path / "m.csv").write_text(f"smiles,label\n{rows}")
    graphs = asapool.load(tmp_path / "m.csv", **options)
    asap = ASAPClassifier("asap+", **QUICK).fit(graphs)
    asap.save(tmp_path / "model.safetensors")
    trained, expected = asapool.load_model(tmp_path / "model.safetensors"), asap.predict_proba(graphs)
    for model in (asap, trained):
        assert np.allclose(model.predict_proba(RINGS + CHAINS), expected, atol=1e-6)
    assert np.allclose(trained.predict_proba(CHAINS[0]), expected[len(RINGS)], atol=1e-6)


@pytest.mark.parametrize("hole", [None, float("nan"), 7])
def test_the_first_item_that_is_no_text_is_named(hole):
    with pytest.raises(DataError, match=rf"X\[2\]: expected SMILES like the others, got {hole}\. Leave it out"):
        ASAPClassifier(**QUICK).fit(["CCO", "CC", hole, "C", hole], [0, 1, 0, 1, 0])


def test_the_first_molecule_that_rdkit_could_not_read_is_named():
    Chem = pytest.importorskip("rdkit.Chem")
    molecules = [Chem.MolFromSmiles("CCO"), None, Chem.MolFromSmiles("CC"), None]
    says = r"X\[1\]: expected an RDKit molecule, got None, .* 2 of 4 are None: leave them out"
    with pytest.raises(DataError, match=says):
        ASAPClassifier(**QUICK).fit(molecules, [0, 1, 0, 1])
    with pytest.raises(DataError, match=r"X\[1\]: expected an RDKit molecule like the others, got 'CC'"):
        ASAPClassifier(**QUICK).fit([molecules[0], "CC"], [0, 1])


@pytest.mark.parametrize("kind", [ASAPClassifier, ASAPRegressor])
def test_fit_transform_is_fit_then_transform_and_the_columns_have_names(graphs, kind):
    y = graphs.y if kind is ASAPClassifier else np.arange(40.0)
    asap = kind(**QUICK)
    vectors = asap.fit_transform(graphs, y)
    assert np.array_equal(vectors, kind(**QUICK).fit(graphs, y).transform(graphs))
    prefix = kind.__name__.lower()
    assert asap.get_feature_names_out().tolist() == [f"{prefix}{k}" for k in range(vectors.shape[1])]
    assert asap.get_feature_names_out(["smiles"]).shape == (vectors.shape[1],)  # a pipeline passes the input's names


def test_embeddings_become_a_table_with_set_output_and_feed_a_column_transformer():
    pd = pytest.importorskip("pandas")
    table, y = pd.DataFrame({"smiles": RINGS + CHAINS, "ph": np.linspace(0, 1, 32)}), [1] * 16 + [0] * 16
    both = ColumnTransformer([("graph", ASAPClassifier(**QUICK), "smiles"), ("other", "passthrough", ["ph"])])
    columns = both.set_output(transform="pandas").fit_transform(table, y).columns.tolist()
    assert columns[0] == "graph__asapclassifier0"
    assert columns[-1] == "other__ph"
    assert columns == both.get_feature_names_out().tolist()


def test_a_method_without_embeddings_has_no_names_for_them(graphs):
    asap = ASAPClassifier("histogram", random_state=0).fit(graphs)
    with pytest.raises(ConfigError, match="the method 'histogram' has no embeddings"):
        asap.get_feature_names_out()


def test_transform_gives_the_vectors_of_the_network():
    graphs = load("synthetic:cycles?graphs=12")
    asap = ASAPClassifier(method="asap", hidden=4, epochs=1, random_state=0).fit(graphs)
    v = asap.transform(graphs)
    assert v.shape == (12, 8)
    logits = asap.model_.head(torch.from_numpy(v)).detach().double()
    np.testing.assert_allclose(logits.softmax(dim=1).numpy(), asap.predict_proba(graphs), atol=1e-6)


def test_a_regressor_learns_sizes_in_their_unit_and_leaves_gaps_out():
    graphs = load("synthetic:cycles?graphs=60&nodes=12")
    sizes = np.diff(graphs.ptr).astype(float)
    asap = ASAPRegressor("histogram", random_state=0).fit(graphs[:50], 1000 * sizes[:50])
    assert asap.predict(graphs[50:]).shape == (10,)
    assert asap.score(graphs[50:], 1000 * sizes[50:]) > 0.9
    y = np.stack([sizes, np.where(np.arange(60) % 2, np.nan, -sizes)], axis=1)
    both = ASAPRegressor("histogram", random_state=0).fit(graphs, y)
    assert both.predict(graphs).shape == (60, 2)
    assert both.score(graphs, y) > 0.9
    assert np.corrcoef(both.predict(graphs)[:, 1], sizes)[0, 1] < -0.9
    assert both.target_.names == ("y0", "y1")


def test_several_yes_no_columns_with_gaps_are_tasks(graphs):
    y = np.stack([graphs.y, 1 - graphs.y], axis=1).astype(float)
    y[::5, 1] = np.nan
    asap = ASAPClassifier(**QUICK, class_weight={1: 2.0}).fit(graphs, y)
    p = asap.predict_proba(graphs)
    assert p.shape == (40, 2)
    assert np.array_equal(asap.predict(graphs), (p >= 0.5).astype(int))
    assert [classes.tolist() for classes in asap.classes_] == [[0, 1], [0, 1]]
    right = asap.predict(graphs).astype(float)
    assert asap.score(graphs, right) == 1
    gaps = right.copy()
    gaps[:10, 0], gaps[10:15], gaps[0, 1] = np.nan, np.nan, 1 - gaps[0, 1]
    gaps[20, 0] = 1 - gaps[20, 0]
    assert asap.score(graphs, gaps) == pytest.approx(33 / 35)  # 5 graphs have no value, 2 have a wrong one
    weight = np.ones(40)
    weight[[0, 20]] = 0
    assert asap.score(graphs, gaps, sample_weight=weight) == 1
    assert np.isnan(asap.score(graphs, np.full((40, 2), np.nan)))
    with pytest.raises(InputError, match="0, 1 or NaN"):
        ASAPClassifier(**QUICK).fit(graphs, y * 2)


def test_weights_of_classes_and_samples_change_the_answers(graphs):
    fast = QUICK | {"lr": 0.05, "validation_fraction": 0.0}
    plain = ASAPClassifier(**fast).fit(graphs).predict_proba(graphs)
    many = ASAPClassifier(**fast, class_weight={"path": 50.0}).fit(graphs).predict_proba(graphs)
    assert (many[:, 1] - plain[:, 1]).mean() > 0.1
    ones = ASAPClassifier(**fast).fit(graphs, sample_weight=np.ones(40)).predict_proba(graphs)
    assert np.allclose(ones, plain, atol=1e-4)
    weight = np.where(graphs.y == 1, 50.0, 1.0)
    assert (ASAPClassifier(**fast).fit(graphs, sample_weight=weight).predict_proba(graphs) - plain)[:, 1].mean() > 0.1
    with pytest.raises(ConfigError, match="no class 'ring'"):
        ASAPClassifier(**fast, class_weight={"ring": 2.0}).fit(graphs)
    with pytest.raises(ConfigError, match="one number per graph"):
        ASAPClassifier(**fast).fit(graphs, sample_weight=[1.0])


def test_warm_start_goes_on_and_verbose_prints(graphs, capsys):
    asap = ASAPClassifier(**QUICK, validation_fraction=0.0, warm_start=True, verbose=1).fit(graphs)
    first = asap.history_[-1].loss
    assert asap.n_iter_ == len(asap.history_) == QUICK["epochs"]
    assert capsys.readouterr().out.count("epoch ") == asap.n_iter_
    asap.fit(graphs)
    fresh = ASAPClassifier(**QUICK, validation_fraction=0.0).fit(graphs)
    assert first == pytest.approx(fresh.history_[-1].loss)
    assert asap.history_[0].loss != fresh.history_[0].loss
    with pytest.raises(ConfigError, match="warm_start needs the same settings"):
        asap.set_params(hidden=4).fit(graphs)


def test_settings_are_reached_by_name_and_searched(graphs):
    asap = ASAPClassifier(**QUICK, method="none").set_params(model__conv="sage", train__clip=1.0)
    assert (asap.model_options, asap.train_options) == ({"conv": "sage"}, {"clip": 1.0})
    search = GridSearchCV(ASAPClassifier(**QUICK, method="none"), {"model__conv": ["gcn", "sage"]}, cv=2)
    assert search.fit(graphs, graphs.y).best_estimator_.model_.config.conv in ("gcn", "sage")


def test_settings_of_training_are_searched_by_their_names(graphs):
    space = {"weight_decay": [0.0, 0.01], "select_by": ["accuracy", "loss"]}
    search = GridSearchCV(ASAPClassifier(**QUICK, method="none"), space, cv=2, error_score="raise")
    assert set(search.fit(graphs, graphs.y).best_params_) == {"weight_decay", "select_by"}
    with pytest.raises(ConfigError, match=r"train\.select_by must be one of"):
        ASAPClassifier(**QUICK, select_by="best").fit(graphs)
    y = np.arange(40.0) ** 3
    first = {}
    for loss in ("squared", "huber"):
        first[loss] = ASAPRegressor(**QUICK, loss=loss).fit(graphs, y).history_[0].loss
    assert first["huber"] < first["squared"]  # of the same weights: Huber's loss is at most half the squared error
    for name, value in {"weight_decay": -1.0, "loss": "absolute"}.items():
        with pytest.raises(ConfigError, match=rf"train\.{name} must be"):
            ASAPRegressor(**QUICK, **{name: value}).fit(graphs, y)


@pytest.mark.parametrize("kind", [ASAPClassifier, ASAPRegressor])
def test_a_saved_model_has_uncertainty_data_if_there_were_validation_graphs(tmp_path, kind):
    smiles, y = RINGS + CHAINS, [1] * 16 + [0] * 16 if kind is ASAPClassifier else np.arange(32.0)
    kind(**QUICK, validation_fraction=0.25).fit(smiles, y).save(tmp_path / "with.safetensors")
    model = checkpoint.load(tmp_path / "with.safetensors")
    trust = Trust.from_dict(model.extra["trust"])
    held = 8 if kind is ASAPClassifier else len(trust.tasks[0].scores)  # a quarter of each class
    assert len(trust.tasks[0].scores) == held > 0
    assert len(trust.references) == 1
    columns = Uncertainty(model, coverage=0.5).columns(predict(model.model, pack(smiles, "ignored")), None)
    assert ("set" in columns) if kind is ASAPClassifier else {"lower(y)", "upper(y)"} <= set(columns)
    kind(**QUICK, validation_fraction=0).fit(smiles, y).save(tmp_path / "without.safetensors")
    model = checkpoint.load(tmp_path / "without.safetensors")
    with pytest.raises(
        ConfigError, match=r"was trained without validation graphs.*or validation_fraction=0\.1 of an est"
    ):
        Uncertainty(model, coverage=0.5)
    assert Uncertainty(model).reads_vectors  # the distance from the training graphs needs no validation graphs


def test_a_warm_start_leaves_out_uncertainty_data_since_it_may_have_seen_the_validation_graphs(graphs, tmp_path):
    asap = ASAPClassifier(**QUICK, warm_start=True).fit(graphs)
    for name, present in (("first", True), ("second", False)):
        asap.save(tmp_path / name)
        assert ("trust" in checkpoint.load(tmp_path / name).extra) == present
        asap.fit(graphs)
    with pytest.raises(CheckpointError, match=r"after a warm start\. Train it again with"):
        Uncertainty(checkpoint.load(tmp_path / "second"), coverage=0.5)


@pytest.mark.parametrize(
    "X", [np.zeros((4, 3)), [(np.eye(3), np.zeros((2, 1)))] * 4, [1, 2, 3, 4]], ids=["matrix", "pairs", "numbers"]
)
def test_things_that_are_no_graphs_are_refused_with_what_x_may_be(X):
    with pytest.raises(
        DataError, match="X must be a GraphSet or a list of NetworkX graphs, PyG Data or SMILES, got a list of"
    ):
        ASAPClassifier(**QUICK).fit(X, [0, 1, 0, 1])


def test_rdkit_molecules_and_columns_are_taken_and_a_saved_model_predicts_tables(tmp_path):
    Chem, pd = pytest.importorskip("rdkit.Chem"), pytest.importorskip("pandas")
    smiles, y = RINGS + CHAINS, pd.Series(np.arange(32.0), name="logS")
    asap = ASAPRegressor(**QUICK).fit([Chem.MolFromSmiles(text) for text in smiles], y)
    assert np.allclose(asap.predict(np.array(smiles, object)[:, None]), asap.predict(smiles), atol=1e-4)
    asap.save(tmp_path / "m.safetensors")
    (tmp_path / "new.csv").write_text("smiles,logS\n" + "".join(f"{s},1.5\n" for s in smiles[:3]))
    model = asapool.load_model(tmp_path / "m.safetensors")
    assert np.allclose(model.predict(tmp_path / "new.csv"), asap.predict(smiles[:3]), atol=1e-4)
    assert model.target.names == ("logS",)
    assert load(tmp_path / "new.csv", recipe=model.recipe).y.tolist() == [[1.5]] * 3
    with pytest.warns(DataConversionWarning):
        assert ASAPClassifier(**QUICK).fit(smiles, np.array([[1]] * 16 + [[0]] * 16)).classes_.tolist() == [0, 1]
    wrong = {"a finite number": [1.0, np.inf], "expected a value": [1.0, np.nan], "numbers": ["a", 1], "one row": [1.0]}
    for says, y in wrong.items():
        with pytest.raises(InputError, match=says):
            ASAPRegressor(**QUICK).fit(["CC", "CCC"], y)


@pytest.mark.parametrize("estimator", [ASAPClassifier(), ASAPRegressor()], ids=["classifier", "regressor"])
@pytest.mark.parametrize(
    "check",
    [
        checks.check_no_attributes_set_in_init, checks.check_parameters_default_constructible,
        checks.check_get_params_invariance, checks.check_set_params, checks.check_estimator_cloneable,
        checks.check_estimator_repr, checks.check_do_not_raise_errors_in_init_or_set_params, checks.check_mixin_order,
        checks.check_valid_tag_types, checks.check_estimator_tags_renamed,
    ],
    ids=lambda check: check.__name__,
)  # fmt: skip
def test_the_checks_of_scikit_learn_that_need_no_table_pass(estimator, check):
    check(type(estimator).__name__, clone(estimator))
