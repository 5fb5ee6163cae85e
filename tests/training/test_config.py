"""Settings: defaults are the authors', mistakes are refused by name, files say the same as Python."""

import pytest

from asapool.errors import ConfigError
from asapool.files import read_toml, to_toml
from asapool.models import ModelConfig
from asapool.training import RunSettings, TrainConfig
from asapool.training.config import AUTHORS_SEEDS, preset, seeds
from asapool.training.settings import DataConfig, overlay, resolve


def test_the_learning_rate_is_halved_after_epoch_50():
    config = TrainConfig()
    assert [config.lr_at(e) for e in (1, 50, 51, 100)] == [0.01, 0.01, 0.005, 0.005]
    assert TrainConfig(lr_step=0).lr_at(1000) == 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0), ("epochs", 1.5), ("batch_size", 0), ("lr", 0.0), ("lr", float("nan")), ("lr", "fast"),
        ("lr", True),
        ("weight_decay", -1.0), ("lr_step", -1), ("lr_gamma", 0.0), ("class_weights", "equal"), ("early_stopping", 0),
        ("clip", 0.0), ("clip", float("inf")), ("seed", -1), ("seed", True), ("threads", 0),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=rf"train\.{name} must be"):
        TrainConfig(**{name: value})


def test_an_unknown_setting_is_refused_with_the_known_ones():
    with pytest.raises(
        ConfigError, match=r"train\.learning_rate is not a setting\. The settings are epochs, batch_size"
    ):
        TrainConfig.from_dict({"learning_rate": 1})
    with pytest.raises(ConfigError, match=r"split\.shares is not a setting"):
        RunSettings.from_dict({"split": {"shares": 1}})


@pytest.mark.parametrize(
    ("name", "batch", "hidden", "dropout", "lr"),
    [
        ("PROTEINS", 128, 64, 0.1, 0.01), ("FRANKENSTEIN", 128, 32, 0.0, 0.001), ("NCI1", 128, 128, 0.0, 0.01),
        ("NCI109", 128, 128, 0.0, 0.01), ("DD", 64, 16, 0.3, 0.01), ("Mutagenicity", 128, 32, 0.0, 0.001),
    ],
)  # fmt: skip
def test_presets_are_the_authors_settings(name, batch, hidden, dropout, lr):
    model, train = ModelConfig(**preset(name)["model"]), TrainConfig(**preset(name)["train"])
    assert (train.batch_size, model.hidden, model.attention_dropout, train.lr) == (batch, hidden, dropout, lr)
    assert (train.epochs, train.weight_decay, train.lr_step, train.lr_gamma) == (100, 5e-4, 50, 0.5)
    assert (model.levels, model.ratio, model.dropout, train.early_stopping) == (3, 0.5, 0.5, None)


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("graphs", [0, 499, 500, 1_999, 2_000, 19_999, 20_000, 10**7])
@pytest.mark.parametrize("method", ["asap+", "none+"])
def test_every_kind_of_target_and_every_size_has_valid_settings(method, kind, graphs):
    tables = preset("mine", method, graphs, kind)
    model, train = ModelConfig(method=method, **tables["model"]), TrainConfig(**tables["train"])
    assert (model.readout_bound, train.schedule, train.optimizer) == (5.0, "onecycle", "adamw")
    fewer = TrainConfig(**preset("mine", method, max(graphs // 10, 1), kind)["train"])
    assert train.epochs <= fewer.epochs or kind == "classification"  # more graphs, more steps per epoch


def test_early_stopping_replaces_the_rule_that_compares_no_epochs():
    given = {"train": {"early_stopping": 5}}
    assert preset("mine", "asap+", 1_000, "regression")["train"]["select_by"] == "last"
    assert preset("mine", "asap+", 1_000, "regression", given)["train"]["select_by"] == "loss"
    with pytest.raises(ConfigError, match="compares none"):
        TrainConfig(select_by="last", early_stopping=5)


@pytest.mark.parametrize(
    ("train", "rule"),
    [({}, "last"), ({"early_stopping": 5}, "loss"), ({"early_stopping": 5, "select_by": "mae"}, "mae")],
)
def test_a_run_with_early_stopping_on_measured_values_can_be_started(train, rule, tmp_path):
    table = tmp_path / "alkanes.csv"
    lines = [f"{'C' * (1 + k % 40)},{0.37 * k:.2f}" for k in range(600)]
    table.write_text("\n".join(["smiles,boiling_point", *lines]))
    settings, graphs = resolve({"data": {"source": str(table)}, "train": train})
    assert (graphs.target.kind, settings.train.select_by, settings.model.hidden) == ("regression", rule, 64)


def test_the_authors_have_twenty_seeds_and_more_can_be_had():
    assert len(set(AUTHORS_SEEDS)) == 20
    assert seeds(3) == (8971, 85688, 9467)
    assert len(set(seeds(25))) == 25


def test_settings_survive_their_own_file(tmp_path):
    chosen = RunSettings.from_dict(
        {
            "data": {"source": 'a "quoted" näme\\with\tall', "skip_invalid": True},
            "split": {"kind": "authors", "fold": 3, "seed": 8971},
            "model": {"method": "topk", "ratio": [0.8, 0.5, 0.25], "jumping": True},
            "train": {"lr": 1e-3, "clip": 2.0, "lr_step": 0, "early_stopping": 7},
        }
    )
    file = tmp_path / "config.toml"
    file.write_text(chosen.to_toml("two lines\nof heading"), encoding="utf-8")
    assert RunSettings.from_file(file) == chosen


def test_values_of_every_kind_survive_toml(tmp_path):
    values = {
        "a": True,
        "b": -3,
        "c": 1e-300,
        "d": "\x7f\x00\u2028'\"",
        "e": [1, 2.5],
        "f": {"x y": 1},
        "g": float("inf"),
    }
    file = tmp_path / "v.toml"
    file.write_text(to_toml({"t": values}), encoding="utf-8")
    assert read_toml(file, ("t",)) == {"t": values}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[train\n", "is not TOML"),
        ("[training]\n", "'training' is not a table of settings"),
        ("train = 3\n", "is not a table"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, says):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        RunSettings.from_file(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        RunSettings.from_file(tmp_path / "absent.toml")


def test_the_command_line_wins_over_the_file_and_the_file_over_the_preset(tmp_path, shared_datasets):
    file = tmp_path / "c.toml"
    file.write_text("[train]\nlr = 0.5\nbatch_size = 7\n[model]\nhidden = 9\nmethod = 'asap'\n")
    chosen, graphs = resolve({"data": {"source": str(shared_datasets / "PROTEINS.zip")}, "train": {"lr": 0.25}}, file)
    assert (chosen.train.lr, chosen.train.batch_size, chosen.model.hidden) == (0.25, 7, 9)
    assert chosen.model.attention_dropout == 0.1  # only the preset speaks of it
    assert len(graphs) == 1113


def test_none_says_nothing():
    assert overlay({"a": {"x": 1}}, {"a": {"x": None, "y": 2}}) == {"a": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("source", "says"),
    [(3, "data.source must be a path or a name in quotes, got 3"), ("", "got ''"), ("a" * 300, "cannot be looked for")],
)
def test_a_source_that_cannot_be_one(source, says):
    with pytest.raises(ConfigError, match=says):
        DataConfig(source=source)


def test_a_split_file_and_its_kind_belong_together():
    for split in ({"kind": "file"}, {"kind": "scaffold", "file": "x.json"}):
        with pytest.raises(ConfigError, match="belong together"):
            RunSettings.from_dict({"split": split})


def test_one_cycle_rises_for_a_quarter_and_falls_for_the_rest():
    config = TrainConfig(schedule="onecycle", epochs=8, lr=1.0)
    assert config.lr_at(1) == pytest.approx(1 / 25)
    assert config.lr_at(2) == pytest.approx((1 + 1 / 25) / 2)  # half of the way up
    assert config.lr_at(3) == 1.0
    assert config.lr_at(6) == pytest.approx(0.5, abs=1e-5)  # half of the way down
    assert config.lr_at(8, 1.0) == pytest.approx(1 / 250_000)
    assert config.lr_at(2, 1.0) == pytest.approx(config.lr_at(3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", "sgd"), ("schedule", "cosine"), ("label_smoothing", 1.0), ("label_smoothing", True),
        ("average", -1), ("select_by", "best"),
    ],
)  # fmt: skip
def test_a_later_setting_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=rf"train\.{name} must be"):
        TrainConfig(**{name: value})


def test_settings_later_than_0_1_0_are_written_only_where_they_are_used():
    assert "schedule" not in TrainConfig().to_dict()
    used = TrainConfig(schedule="onecycle", optimizer="adamw", average=3, select_by="loss", label_smoothing=0.1)
    assert TrainConfig.from_dict(used.to_dict()) == used


def test_a_method_brings_its_schedule_and_an_explicit_setting_wins():
    source = {"data": {"source": "synthetic:cycles?graphs=12"}}
    chosen, _ = resolve(source)
    assert (chosen.model.method, chosen.model.hidden, chosen.train.schedule) == ("asap+", 32, "onecycle")
    chosen, _ = resolve(source | {"train": {"schedule": "steps", "lr": 0.3}, "model": {"hidden": 7}})
    assert (chosen.model.hidden, chosen.train.schedule, chosen.train.lr, chosen.train.optimizer) == (
        7,
        "steps",
        0.3,
        "adamw",
    )
    chosen, _ = resolve(source | {"model": {"method": "asap"}})
    assert (chosen.model.levels, chosen.train, chosen.model.conv) == (3, TrainConfig(), "gcn")
