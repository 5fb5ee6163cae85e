"""ModelConfig: plain data in, plain data out, and a sentence for whatever does not fit."""

import tomllib

import pytest

from asapool.errors import ConfigError
from asapool.models import ModelConfig


def test_the_defaults_are_the_papers():
    config = ModelConfig()
    assert (config.method, config.levels, config.ratios, config.hops, config.dropout) == ("asap", 3, (0.5,) * 3, 1, 0.5)


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(),
        ModelConfig(method="sortpool", hidden=16, levels=2, ratio=(0.8, 0.3), conv="gin", batch_norm=True, dropout=0),
        ModelConfig(max_neighbours=4, semantics="authors", attention_dropout=0.1, soft_edges=False, ratio=5),
    ],
)
def test_a_config_survives_toml(config):
    plain = config.to_dict()
    lines = [f"{k} = {str(v).lower() if isinstance(v, bool) else repr(v)}" for k, v in plain.items()]
    assert ModelConfig.from_dict(tomllib.loads("\n".join(lines))) == config


def test_a_setting_that_is_not_given_keeps_its_default():
    assert ModelConfig.from_dict({"hidden": 8}) == ModelConfig(hidden=8)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"method": "asp"}, "model.method must be one of 'asap.*'asp'"),
        ({"conv": "gat"}, "model.conv must be one of"),
        ({"hidden": 0}, "model.hidden must be a whole number of at least 1, got 0"),
        ({"hidden": 8.0}, "model.hidden must be a whole number"),
        ({"levels": True}, "model.levels must be a whole number"),
        ({"ratio": 0.0}, r"model.ratio must lie in \(0, 1\]"),
        ({"ratio": "half"}, "model.ratio must be a number"),
        ({"ratio": (0.5, 0.5)}, "3 levels, got 2 ratios"),
        ({"ratio": (0.5, 0.5, 1.5)}, r"model.ratio must lie in \(0, 1\]"),
        ({"dropout": 1.0}, r"model.dropout must be a number in \[0, 1\), got 1.0"),
        ({"attention_dropout": -0.1}, "model.attention_dropout must be a number"),
        ({"link_weight": float("nan")}, "model.link_weight must be a number 0 or more"),
        ({"batch_norm": 1}, "model.batch_norm must be true or false, got 1"),
        ({"max_neighbours": 0}, "model.max_neighbours must be a whole number"),
        ({"semantics": "tgp"}, "model.semantics must be one of 'paper', 'authors', 'pyg'"),
        ({"method": "set2set", "hidden": 129}, "model.hidden must be at most 128 for set2set"),
        ({"method": "sortpool", "hidden": 257}, "model.hidden must be at most 256 for sortpool"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(values, words):
    with pytest.raises(ConfigError, match=words):
        ModelConfig.from_dict(values)


def test_an_unknown_setting_names_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"model.drop_out is not a setting; did you mean model.dropout\?"):
        ModelConfig.from_dict({"drop_out": 0.1})
