"""Loading: every kind of source, where names are looked up, and downloads."""

import pytest

from asapool.data import download, load, stream
from asapool.errors import ConfigError, DataError
from tests.data.sources import write_tu


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("gone.csv", r"gone.csv: there is no such file or folder\. Expected a TU folder, zip or name"),
        ("some/where", "some/where: there is no such file or folder"),
        ("two words", "two words: there is no such file or folder, and no TU data set of that name. Correct it"),
        ("mutag", r"no TU data set of that name \(did you mean 'MUTAG'\?\); and if it is meant as SMILES, 'mutag' is"),
    ],
)
def test_sources_that_do_not_exist(source, sentence):
    with pytest.raises(DataError, match=sentence):
        load(source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("C1CC", "'C1CC' is not SMILES that RDKit can read (unclosed ring)"),
        ("CC-NX", "'CC-NX' is not SMILES that RDKit can read (syntax error)"),
        ("C(=O", "'C(=O' is not SMILES that RDKit can read (extra open parentheses)"),
        ("C/C=C1", "'C/C=C1' is not SMILES that RDKit can read (unclosed ring)"),
        ("CC.C1C", "'CC.C1C' is not SMILES that RDKit can read (unclosed ring)"),
        ("CN(C)(C)C", "'CN(C)(C)C' is not a possible molecule (Explicit valence for atom # 1 N, 4, is greater"),
    ],
)
def test_a_mistyped_smiles_is_never_sent_to_a_server(tmp_path, monkeypatch, source, reason):
    requested = []
    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path))
    monkeypatch.setattr(download, "_download", lambda name, folder: requested.append(name))
    with pytest.raises(DataError) as caught:
        load(source)
    assert requested == []
    sentence = f"{source}: there is no such file or folder, and no TU data set of that name; and if it is meant as SM"
    assert str(caught.value).startswith(sentence)
    assert reason in str(caught.value)


def test_files_and_folders_without_a_reader(tmp_path):
    (tmp_path / "a.xyz").write_text("")
    with pytest.raises(DataError, match=r"a.xyz: no reader for .xyz\. Expected"):
        load(tmp_path / "a.xyz")
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(DataError, match=r"a.xlsx: is a spreadsheet\. Save its sheet as CSV"):
        load(tmp_path / "a.xlsx")
    (tmp_path / "a.txt").write_text("smiles\tlabel\nC\t1\nCC\t0\n")
    with pytest.raises(DataError, match=r"a.txt: the ending .txt says nothing .* Rename a table of molecules to .csv"):
        load(tmp_path / "a.txt")
    assert len(load((tmp_path / "a.txt").rename(tmp_path / "a.csv"))) == 2
    with pytest.raises(DataError, match="the name of the source is empty"):  # not the current folder
        load("")
    (tmp_path / "plain").write_text("")
    with pytest.raises(DataError, match="no reader for a file without a suffix"):
        load(tmp_path / "plain")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file ends with _A\.txt"):
        load(tmp_path / "empty")


def test_settings_that_make_no_sense():
    with pytest.raises(ConfigError, match="workers must be at least 1, got 0"):
        load("synthetic:cycles", workers=0)
    with pytest.raises(ConfigError, match="labels must be one of 'required'"):
        load("synthetic:cycles", labels="maybe")
    with pytest.raises(ConfigError, match="chunk must be at least 1"):
        stream("a.jsonl", chunk=0)
    with pytest.raises(DataError, match="there is no such file"):
        stream("a.jsonl")


def test_formats_that_cannot_be_read_in_pieces_come_whole(tmp_path):
    load("synthetic:cycles").save(tmp_path / "a.npz")
    assert [len(piece) for piece in stream(tmp_path / "a.npz", chunk=10)] == [200]
    with pytest.raises(DataError, match=r"no.jsonl: there is no such file"):
        stream(tmp_path / "no.jsonl")
    with pytest.raises(ConfigError, match="chunk must be at least 1"):
        stream("synthetic:cycles", chunk=0)


def test_a_name_is_fetched_once(tmp_path, monkeypatch):
    fetched = []

    def fake(name, folder):
        fetched.append(name)
        write_tu(folder / name, "raw")
        for file in (folder / name / "raw").iterdir():
            file.rename(file.with_name(file.name.replace("raw_", f"{name}_")))

    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path))
    monkeypatch.delenv("ASAPOOL_DATA", raising=False)
    monkeypatch.setattr(download, "_download", fake)
    monkeypatch.setattr(download, "TU_NAMES", {"TINY"})
    assert len(load("TINY")) == len(load("TINY")) == 2
    assert fetched == ["TINY"]
    assert [p.name for p in (tmp_path / "tu").iterdir()] == ["TINY"]


def test_a_download_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def offline(name, folder):
        (folder / "half").write_text("written")
        raise OSError("no route to host")

    monkeypatch.setenv("ASAPOOL_CACHE", str(tmp_path))
    monkeypatch.delenv("ASAPOOL_DATA", raising=False)
    monkeypatch.setattr(download, "_download", offline)
    monkeypatch.setattr(download, "TU_NAMES", {"TINY"})
    with pytest.raises(DataError, match=r"TINY: not in .*could not be downloaded \(no route to host\)\. Check"):
        load("TINY")
    assert list((tmp_path / "tu").iterdir()) == []
    monkeypatch.setattr(download, "_download", lambda name, folder: None)
    with pytest.raises(DataError, match=r"the download contains no TINY_A\.txt"):
        load("TINY")


def test_pygs_class_knows_how_to_download(tmp_path, monkeypatch):
    from torch_geometric.datasets import TUDataset

    seen = []
    monkeypatch.setattr(TUDataset, "download", lambda self: seen.append((self.raw_dir, self.cleaned, self.name)))
    download._download("TINY", tmp_path)
    assert seen == [(str(tmp_path / "TINY" / "raw"), False, "TINY")]


def test_too_little_memory_is_reported(tmp_path, monkeypatch):
    from asapool.data import loading

    def greedy(source, options):
        raise MemoryError

    monkeypatch.setattr(loading, "_read", greedy)
    with pytest.raises(DataError, match=r"huge\.zip: does not fit into memory"):
        load("huge.zip")


def test_smiles_longer_than_a_file_name_may_be():
    """255 bytes in most file systems."""
    assert len(load("C" * 300, labels="optional").x) == 300
    with pytest.raises(DataError, match="is not SMILES that RDKit can read"):
        load("C" * 300 + "X1", labels="optional")
