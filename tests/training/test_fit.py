"""One training: it learns, it is deterministic to the byte, it keeps the best epoch, and it can be cut anywhere."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import CheckpointError, ConfigError, TrainingError
from asapool.kernels.threads import flushes_denormals
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit, predict, state
from asapool.training.adam import Adam
from asapool.training.fitting import _not_finite, order
from asapool.training.losses import class_weights
from asapool.training.state import Progress, load_state, save_state, snapshot

SMALL = ModelConfig(hidden=8, attention_dropout=0.2)
QUICK = TrainConfig(epochs=6, batch_size=16, seed=3)


@pytest.fixture(scope="module")
def graphs():
    return load("synthetic:cycles?graphs=60&nodes=9")


@pytest.fixture(scope="module")
def parts():
    return SimpleNamespace(train=np.arange(40), val=np.arange(40, 60))


def fresh(graphs, config=SMALL):
    return build(config, graphs.num_features, graphs.num_classes, seed=1)


def content(model):
    return {name: value.numpy().tobytes() for name, value in model.state_dict().items()}


def trained(graphs, parts, config=QUICK, **options):
    model = fresh(graphs)
    return model, fit(model, graphs, parts, config, **options)


def test_random_graphs_can_be_memorised(graphs):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=20)
    some = replace(graphs.subset(range(20)), x=rng.normal(size=(graphs.ptr[20], 3)), y=y)
    model = fresh(some, ModelConfig(hidden=32, dropout=0.0))
    none = SimpleNamespace(train=np.arange(20), val=[])
    fit(model, some, none, TrainConfig(epochs=150, batch_size=20, weight_decay=0.0, seed=0))
    assert (predict(model, some).argmax(1) == y).all()


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(graphs, parts):
    one, two = content(trained(graphs, parts)[0]), content(trained(graphs, parts)[0])
    assert one == two
    assert content(trained(graphs, parts, replace(QUICK, seed=4))[0]) != one


def test_the_callers_generator_and_threads_are_left_alone(graphs, parts):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    trained(graphs, parts, replace(QUICK, epochs=1, threads=2))
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == 1


def test_tiny_numbers_are_zero_in_a_training_and_the_callers_are_left_alone(graphs, parts):
    inside = []
    trained(graphs, parts, on_epoch=lambda epoch, progress: inside.append(flushes_denormals()))
    assert set(inside) == {True}
    assert not flushes_denormals()


def test_the_first_of_equally_good_epochs_is_kept(graphs, parts):
    best = {}

    def watch(epoch, progress):
        best.setdefault(epoch.val_accuracy, (epoch.epoch, snapshot(watch.model)))

    watch.model = fresh(graphs)
    done = fit(watch.model, graphs, parts, replace(QUICK, epochs=12), on_epoch=watch)
    highest = max(best)
    assert len(best) < 12, "this test needs a tie"
    assert (done.best_score, done.best_epoch) == (highest, best[highest][0])
    assert all(torch.equal(value, best[highest][1][name]) for name, value in watch.model.state_dict().items())


def test_without_a_validation_part_the_last_epoch_stays(graphs):
    _, done = trained(graphs, SimpleNamespace(train=np.arange(60), val=[]))
    assert (done.best_epoch, done.best_score, done.history[-1].val_loss) == (6, None, None)


def test_early_stopping_waits_as_long_as_its_patience(graphs, parts):
    _, done = trained(graphs, parts, replace(QUICK, epochs=200, early_stopping=3))
    assert len(done.history) == done.best_epoch + 3
    assert done.stopped == "no better validation accuracy in 3 epochs"


def test_early_stopping_without_validation_graphs_says_that_it_is_off(graphs, parts):
    none = SimpleNamespace(train=parts.train, val=[])
    _, done = trained(graphs, none, replace(QUICK, early_stopping=1))
    assert (len(done.history), done.stopped) == (6, None)
    assert done.notes == ("early stopping needs validation graphs, and there are none, so all epochs were trained",)
    assert trained(graphs, none)[1].notes == ()


def test_balanced_class_weights_by_hand(graphs):
    assert class_weights(np.array([0, 0, 0, 1]), 3).tolist() == pytest.approx([4 / 6, 2.0, 0.0])
    # nine of one class and one of the other: without weights the rare class is never the answer, with weights it is
    rare = SimpleNamespace(train=np.flatnonzero((graphs.y == 0) | (np.arange(60) < 8)), val=[])
    config = TrainConfig(epochs=1, batch_size=64, lr=1e-9, weight_decay=0.0)
    plain, even = trained(graphs, rare, config)[1], trained(graphs, rare, replace(config, class_weights="balanced"))[1]
    assert plain.history[0].loss != even.history[0].loss


def test_clipping_bounds_the_step(graphs, parts):
    def moved(clip):
        before, (after, _) = (
            fresh(graphs),
            trained(graphs, parts, TrainConfig(epochs=1, batch_size=64, clip=clip, weight_decay=0.0)),
        )
        return sum((a - b).abs().sum() for a, b in zip(before.parameters(), after.parameters(), strict=True))

    assert moved(1e-12) < moved(None) / 2


def test_every_epoch_has_its_own_order_of_all_graphs():
    first, second = order(np.arange(50), 0, 1), order(np.arange(50), 0, 2)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != second.tolist()
    assert order(np.arange(50), 1, 1).tolist() != first.tolist()


def test_a_loss_that_is_no_number_stops_and_the_best_weights_stay(graphs, parts):
    model = fresh(graphs)

    def poison(epoch, progress):
        poison.best = {name: value.clone() for name, value in progress.best.items()}
        if epoch.epoch == 3:
            with torch.no_grad():
                next(model.parameters()).fill_(float("inf"))

    done = fit(model, graphs, parts, QUICK, on_epoch=poison)
    assert done.diverged
    assert done.stopped == "the loss was not a number in epoch 4"
    assert len(done.history) == 3
    assert all(torch.equal(value, poison.best[name]) for name, value in model.state_dict().items())


def test_a_weight_that_is_no_number_is_noticed_even_when_the_loss_hides_it(graphs):
    model = fresh(graphs)
    assert _not_finite(model, 0.5, 0.5) is None
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] = float("nan")
    assert _not_finite(model, 0.5, 0.5) == "a weight was"
    assert _not_finite(model, float("inf"), 0.5) == _not_finite(model, 0.5, float("nan")) == "the loss was"


def test_a_loss_that_is_no_number_at_once_is_an_error_with_the_next_step(graphs, parts):
    broken = replace(graphs, x=np.full(graphs.x.shape, 3e38))
    with pytest.raises(TrainingError, match=r"not a number in epoch 1\. Lower train\.lr"):
        fit(fresh(broken), broken, parts, QUICK)


def test_graphs_without_labels_and_empty_parts_are_refused(graphs, parts):
    y = graphs.y.copy()
    y[[1, 2]] = -1
    with pytest.raises(TrainingError, match="2 graphs of the training part have no label"):
        trained(replace(graphs, y=y), parts)
    with pytest.raises(TrainingError, match="there are no training graphs"):
        trained(graphs, SimpleNamespace(train=[], val=[1]))


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_going_on_from_any_epoch_gives_the_same_bytes(graphs, parts, tmp_path, cut):
    def stop(epoch, progress):
        if epoch.epoch == cut:
            raise KeyboardInterrupt

    whole, done = trained(graphs, parts)
    with pytest.raises(KeyboardInterrupt):
        trained(graphs, parts, on_epoch=stop, state_file=tmp_path / "s", owner={"data": "a"})
    torch.manual_seed(999)  # whatever happened in between
    again, rest = trained(graphs, parts, state_file=tmp_path / "s", owner={"data": "a"})
    assert content(again) == content(whole)
    assert [e.loss for e in rest.history] == [e.loss for e in done.history]
    assert rest.best_epoch == done.best_epoch


def test_a_state_of_another_run_or_another_kind_is_refused(graphs, tmp_path):
    model, file = fresh(graphs), tmp_path / "s"
    adam = Adam(model.parameters())
    generator = torch.Generator()
    save_state(file, model, adam, generator, Progress(), {"data": "a"})
    with pytest.raises(CheckpointError, match=r"another data \('a', now 'b'\)"):
        load_state(file, model, adam, generator, {"data": "b"})
    other = fresh(graphs, ModelConfig(hidden=16))
    with pytest.raises(CheckpointError, match="does not match this model"):
        load_state(file, other, Adam(other.parameters()), generator, {"data": "a"})
    for damage in (b"", file.read_bytes()[:-9], b"\x80\x04" + file.read_bytes()):
        file.write_bytes(damage)
        with pytest.raises(CheckpointError, match="is not a training state"):
            load_state(file, model, adam, generator, {"data": "a"})


def test_a_state_of_another_version_is_named_or_refused(graphs, tmp_path, monkeypatch):
    model = build(ModelConfig(hidden=4, levels=1), graphs.num_features, 2, seed=0)
    adam, generator, file = Adam(model.parameters()), torch.Generator(), tmp_path / "state.safetensors"
    with monkeypatch.context() as older:
        older.setattr(state, "__version__", "0.1.9")
        save_state(file, model, adam, generator, Progress(), {})
    with pytest.warns(UserWarning, match=r"started by asapool 0\.1\.9 and is continued by .* the same numbers"):
        load_state(file, model, adam, generator, {})
    monkeypatch.setattr(state, "NUMERICS", state.NUMERICS + 1)  # as if this version computed otherwise
    with pytest.raises(
        CheckpointError, match=r"written by asapool 0\.1\.9, which gives different numbers .*--mix-versions"
    ):
        load_state(file, model, adam, generator, {})
    with pytest.warns(UserWarning, match="different numbers"):
        load_state(file, model, adam, generator, {}, mix_versions=True)


def test_memory_does_not_grow_with_the_epochs(graphs, parts):
    import gc
    import resource

    trained(graphs, parts, replace(QUICK, epochs=20))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trained(graphs, parts, replace(QUICK, epochs=80))
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000
    )  # kB; one epoch's tensors are about as much


def test_trainings_in_threads_give_the_bytes_of_one_alone(graphs, parts):
    """0.1.0 seeded torch's global generator, and 39 of 40 such training runs differed."""
    from concurrent.futures import ThreadPoolExecutor

    def train(_):
        model = fresh(graphs, ModelConfig(hidden=8, attention_dropout=0.2))
        fit(model, graphs, parts, replace(QUICK, epochs=2, threads=1))
        return hash(tuple(content(model).values()))

    before = torch.get_rng_state()
    alone = train(0)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(train, range(8))) == {alone}
    assert torch.equal(torch.get_rng_state(), before)


def test_the_numbers_are_those_of_torchs_global_generator(graphs, parts):
    """As 0.1.0 drew them: dropout from the global generator, seeded with train.seed."""
    model = fresh(graphs, ModelConfig(hidden=8, attention_dropout=0.2))
    done = fit(model, graphs, parts, replace(QUICK, epochs=1))
    twin = fresh(graphs, ModelConfig(hidden=8, attention_dropout=0.2)).train()
    torch.manual_seed(QUICK.seed)
    adam = torch.optim.Adam(twin.parameters(), lr=QUICK.lr, weight_decay=QUICK.weight_decay, fused=True)
    shuffled, total = order(np.asarray(parts.train), QUICK.seed, 1), 0.0
    for start in range(0, len(shuffled), QUICK.batch_size):
        batch = graphs.batch(shuffled[start : start + QUICK.batch_size])
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            twin(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight), batch.y
        )
        loss.backward()
        adam.step()
        total += loss.item() * len(batch)
    assert total / len(shuffled) == done.history[0].loss


def test_sample_weights_count_graphs_as_often_as_they_say(graphs):
    """A weight of 2 is a graph twice, a weight of 0 none: the loss of one batch says so."""
    config = TrainConfig(epochs=1, batch_size=64, lr=1e-9, weight_decay=0.0, seed=0)
    w = np.ones(len(graphs))
    w[3], w[5] = 2, 0
    once = SimpleNamespace(train=np.arange(8), val=[])
    twice = SimpleNamespace(train=np.array([0, 1, 2, 3, 3, 4, 6, 7]), val=[])
    model = ModelConfig(hidden=8, dropout=0.0)

    def loss(parts, **options):
        return fit(fresh(graphs, model), graphs, parts, config, **options).history[0].loss

    assert loss(once, sample_weight=w) == pytest.approx(loss(twice), rel=1e-5)
    assert loss(once, sample_weight=w) != pytest.approx(loss(once), rel=1e-5)
    for bad, words in ((w[:5], "one number per graph"), (-w, "at least 0"), (0 * w, "not all 0")):
        with pytest.raises(ConfigError, match=words):
            loss(once, sample_weight=bad)


def test_validation_graphs_count_as_much_as_their_weights_say(graphs):
    config = TrainConfig(epochs=3, batch_size=16, seed=0)
    val, w = np.arange(20, 30), np.ones(len(graphs))
    some = np.array([20, 21, 24, 27])
    w[np.setdiff1d(val, some)] = 0

    def history(val, **options):
        done = fit(fresh(graphs), graphs, SimpleNamespace(train=np.arange(20), val=val), config, **options)
        return done, [epoch.val_loss for epoch in done.history]

    weighted, losses = history(val, sample_weight=w)
    assert losses == pytest.approx(history(some)[1], rel=1e-5)
    assert losses != pytest.approx(history(val)[1], rel=1e-4)
    assert weighted.selected_by == "loss"
    assert weighted.notes == (
        "the graphs have different weights, so the epoch is chosen by the weighted loss, not by accuracy",
    )
    assert history(val, sample_weight=2 * np.ones(len(graphs)))[0].selected_by == "paper"


def test_class_weights_by_name(graphs):
    config = TrainConfig(epochs=1, batch_size=64, lr=1e-9, weight_decay=0.0, seed=0)
    parts = SimpleNamespace(train=np.arange(8), val=[])
    named = dict(zip(graphs.class_names, (1.0, 3.0), strict=True))
    by_graph = np.where(graphs.y == 1, 3.0, 1.0)
    one = fit(fresh(graphs), graphs, parts, replace(config, class_weights=named))
    two = fit(fresh(graphs), graphs, parts, config, sample_weight=by_graph)
    assert one.history[0].loss == pytest.approx(two.history[0].loss, rel=1e-6)
    with pytest.raises(ConfigError, match="has no class 'other'"):
        fit(fresh(graphs), graphs, parts, replace(config, class_weights={"other": 2.0}))


def test_a_rare_class_is_learned_where_accuracy_would_keep_a_model_that_never_answers_it(graphs):
    """With weighted classes the epoch is chosen by ROC-AUC, and ties of other rules are broken by the loss."""
    parts = SimpleNamespace(train=np.arange(40), val=np.arange(40, 60))
    done = fit(fresh(graphs), graphs, parts, replace(QUICK, class_weights="balanced"))
    assert done.selected_by == "roc_auc"
    assert done.best_score == max(e.val_score for e in done.history)
    done = fit(fresh(graphs), graphs, parts, replace(QUICK, select_by="loss"))
    assert done.best_score == min(e.val_loss for e in done.history)
    one_class = SimpleNamespace(train=np.arange(40), val=np.flatnonzero(graphs.y == 0)[:5])
    done = fit(fresh(graphs), graphs, one_class, replace(QUICK, select_by="f1"))
    assert (done.selected_by, len(done.notes)) == ("loss", 1)
    assert "only one class" in done.notes[0]


def test_the_rule_last_keeps_the_last_epoch_whatever_the_validation_part_says(graphs, parts):
    swapped = replace(graphs, y=np.where(np.arange(60) < 40, graphs.y, 1 - graphs.y))  # wrong classes in validation
    chosen, done = trained(swapped, parts, replace(QUICK, select_by="loss"))
    assert done.best_epoch < 6
    last, kept = trained(swapped, parts, replace(QUICK, select_by="last"))
    assert (kept.best_epoch, kept.selected_by) == (6, "last")
    assert kept.best_score == kept.history[-1].val_loss
    assert [e.val_loss for e in kept.history] == [e.val_loss for e in done.history]  # the same training
    assert content(last) != content(chosen)
    unseen, _ = trained(swapped, SimpleNamespace(train=parts.train, val=[]))
    assert content(last) == content(unseen)


def test_a_cut_training_of_asap_plus_with_averaged_weights_ends_in_the_same_bytes(graphs, parts, tmp_path):
    config = replace(
        QUICK,
        epochs=12,
        optimizer="adamw",
        schedule="onecycle",
        average=2,
        label_smoothing=0.1,
        clip=2.0,
        select_by="loss",
    )
    plus = ModelConfig(method="asap+", hidden=8)

    class StopError(Exception):
        pass

    def stop(epoch, progress):
        if epoch.epoch == 2:
            raise StopError

    whole, cut = fresh(graphs, plus), fresh(graphs, plus)
    done = fit(whole, graphs, parts, config)
    with pytest.raises(StopError):
        fit(cut, graphs, parts, config, on_epoch=stop, state_file=tmp_path / "state")
    cut = fresh(graphs, plus)
    fit(cut, graphs, parts, config, state_file=tmp_path / "state")
    assert content(cut) == content(whole)
    losses = [epoch.val_loss for epoch in done.history]
    assert done.best_epoch == losses.index(min(losses)) + 1


def test_the_mean_of_weights_by_hand():
    from asapool.training.state import average_weights, averaged

    layer, progress = torch.nn.Linear(1, 1, bias=False), Progress()
    for number, (weight, mean) in enumerate([(2.0, 2.0), (4.0, 3.0), (9.0, 6.0)]):  # over about two epochs
        torch.nn.init.constant_(layer.weight, weight)
        average_weights(progress, layer, 2)
        progress.history.append(number)
        with averaged(progress, layer):
            assert layer.weight.item() == mean
        assert layer.weight.item() == weight
