"""The entry points for every source: read returns a Reading, load its graphs, stream the graphs in pieces."""

from __future__ import annotations

import re
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike, fspath
from os.path import exists, isdir, isfile
from pathlib import Path
from typing import Any

from asapool.data.check import is_text
from asapool.data.frames import is_frame
from asapool.data.graphset import GraphSet
from asapool.data.readers import Reader, formats, reader_of
from asapool.data.reading import Log, Numbered, Reading, ReadOptions, Wanted, all_pieces, apply_recipe
from asapool.errors import ConfigError, DataError, MissingExtraError

BUILT_IN = {"nci-alerts": "4,991 molecules that come with RDKit, labelled by its BRENK catalogue of structural alerts"}
STDIN = "standard input"  # in messages
PEEK = 1 << 20  # bytes by which the kind of standard input is recognised
SMILES = re.compile(r"(Br|Cl|[BCNOPSFIbcnops]|\[[^]]*\]?|[-=#$:/\\.()%\d])+")  # text that was probably meant as SMILES


def read(source: Any, **options: Any) -> Reading:
    """Read any source; return the graphs together with notes about the source.

    Args:
        source: a path, the name of a TU data set, "nci-alerts", "synthetic:motifs" (see `asapool data list`), a pandas
            or polars data frame with a column of SMILES, a list of PyG or NetworkX objects, or a GraphSet.
        options: the fields of asapool.data.reading.ReadOptions, such as features, target or skip_invalid.

    Returns:
        Reading(graphs, skipped, missing, unlabelled, notes).

    >>> read("synthetic:cycles?graphs=6").graphs
    GraphSet('synthetic:cycles', graphs=6, nodes=88, edges=170, features=3, classes=2)
    """
    chosen = _options(options)
    try:
        return _refuse_unused(_read(source, chosen), source, chosen)
    except MemoryError:
        raise DataError(f"{source}: does not fit into memory. Use a part of it, or a larger machine") from None


def load(source: Any, **options: Any) -> GraphSet:
    """Read any source into one packed GraphSet: read(source, **options).graphs.

    It has no place for notes, so unreadable rows of a table are refused unless skip_invalid=True. docs/data.md has one
    example per format; asapool.data.reading explains every option.

    >>> load("synthetic:cycles?graphs=6")
    GraphSet('synthetic:cycles', graphs=6, nodes=88, edges=170, features=3, classes=2)
    """
    return read(source, **{"skip_invalid": False} | options).graphs


def read_pieces(source: Any, *, chunk: int = 1000, **options: Any) -> Iterator[Reading]:
    """Read JSON lines or a table of molecules in pieces of up to chunk graphs; other sources come in one piece.

    Without a recipe labels are ignored, since the classes are known only after reading the whole file. A piece without
    any readable row has an empty set.
    """
    return (reading for _, reading in read_numbered(source, chunk, all_pieces, **options))


def read_numbered(source: Any, chunk: int, wanted: Wanted, **options: Any) -> Numbered:
    """As read_pieces, with the number of every piece; only the wanted pieces are read."""
    if chunk < 1:
        raise ConfigError(f"chunk must be at least 1, got {chunk}")
    chosen = _options(options)
    if chosen.labels is None and chosen.recipe is None:
        chosen = replace(chosen, labels="ignored")
    path = Path(source).expanduser() if isinstance(source, (str, PathLike)) else None
    reader = None if path is None or not (_is_file(path) or _is_map(path)) else reader_of(path)
    if path is None or reader is None or reader.pieces is None or chosen.duplicates == "merge":
        whole = _read(source, chosen)
        return iter([(0, whole)]) if wanted is all_pieces else _chop(whole, chunk, wanted)
    return reader.read_pieces(path, replace(chosen, workers=1), chunk, wanted)


def _chop(whole: Reading, chunk: int, wanted: Wanted) -> Numbered:
    """The wanted pieces of a source that was read whole; the first piece has the notes."""
    for number, start in enumerate(range(0, len(whole.graphs), chunk)):
        if wanted(number):
            graphs = whole.graphs.subset(slice(start, start + chunk))
            yield number, replace(whole, graphs=graphs) if number == 0 else Reading(graphs=graphs)


def stream(source: Any, *, chunk: int = 1000, **options: Any) -> Iterator[GraphSet]:
    """The graphs of read_pieces, for files larger than memory."""
    return (piece.graphs for piece in read_pieces(source, chunk=chunk, **options) if len(piece.graphs))


def class_column(source: str | PathLike[str], graphs: GraphSet) -> str | None:
    """The column of a table that the classes were read from; None if the source is not a table of molecules."""
    return graphs.recipe.get("target") if _is_table(source) else None


def _is_table(source: str | PathLike[str]) -> bool:
    reader = reader_of(Path(source))
    return reader is not None and reader.table


def read_saved(path: Path, options: ReadOptions) -> Reading:
    """Read an .npz file that asapool wrote."""
    return Log().reading(apply_recipe(GraphSet.load(path), options))


def _options(options: dict[str, Any]) -> ReadOptions:
    try:
        return ReadOptions(**options)
    except TypeError as error:
        raise ConfigError(f"{str(error).removeprefix('ReadOptions.__init__() ')}. See asapool.data.reading") from None


def _read(source: Any, options: ReadOptions) -> Reading:
    if isinstance(source, GraphSet):
        return Log().reading(apply_recipe(source, options))
    if not isinstance(source, (str, PathLike)):
        return _objects(source, options)
    text = fspath(source)
    if not text:
        raise DataError(f"the name of the source is empty. Expected {formats()}")
    if text == "-":
        with standard_input() as file:
            reading = _read(file, options)
        return replace(reading, notes=tuple(note.replace(str(file), STDIN) for note in reading.notes))
    if text.startswith("smiles:"):
        from asapool.data.molecule_table import read_smiles_list

        return read_smiles_list(text.removeprefix("smiles:").split(","), options)
    if text == "nci-alerts":
        from asapool.data.alerts import load_alerts

        return Log().reading(apply_recipe(load_alerts(), options))
    if text.startswith("synthetic:"):
        from asapool.data.synthetic import make_synthetic

        # synthetic:paths has no labels, and a set of one graph one class: neither is an error here
        return Log().reading(make_synthetic(text, options if options.labels else replace(options, labels="optional")))
    if not is_text(text):
        raise DataError(f"{text!r}: the name contains bytes that are not UTF-8 text. Rename the file")
    path = Path(text).expanduser()
    if isdir(path):
        return _folder(path, options)
    if _is_file(path):
        return _reader(path).read(path, options)
    if is_smiles(text, options.data_root):
        from asapool.data.molecule_table import read_smiles_list

        return read_smiles_list([text], options)
    from asapool.data.download import find_tu
    from asapool.data.tu import read_tu

    folder = None if path.suffix or path.name != text else find_tu(text, options.data_root)
    if folder is None:
        raise _not_found(text, is_path=bool(path.suffix or path.name != text))
    return read_tu(folder, options)


def _not_found(text: str, is_path: bool) -> DataError:
    """The error for a source that is no file, no folder, no data set and no readable SMILES."""
    from asapool.data.molecules import smiles_problem
    from asapool.data.tu_names import TU_NAMES

    problem = None
    if reader_of(Path(text)) is None and (SMILES.fullmatch(text) if is_path else not any(c.isspace() for c in text)):
        problem = smiles_problem(text)
    if is_path and problem is None:
        return DataError(f"{text}: there is no such file or folder. Expected {formats()}")
    lower = {name.lower(): name for name in sorted(TU_NAMES)}
    close = [] if is_path else get_close_matches(text.lower(), lower, 1, 0.8)
    return DataError(
        f"{text}: there is no such file or folder, and no TU data set of that name"
        + (f" (did you mean {lower[close[0]]!r}?)" if close else "")
        + (f"; and if it is meant as SMILES, {problem}" if problem else "")
        + ". Correct it, or give the folder of the data set with --data-root or ASAPOOL_DATA"
    )


def is_smiles(text: str, data_root: str | Path | None = None) -> bool:
    """Whether a source that is neither file nor folder is SMILES: RDKit reads it, and no local TU set has that name."""
    from asapool.data.download import local_tu

    if not text or "/" in text[:1] or any(c.isspace() for c in text) or reader_of(Path(text)) is not None:
        return False
    try:
        from asapool.data.molecules import load_rdkit

        Chem = load_rdkit()
    except MissingExtraError:
        return False
    from rdkit import rdBase

    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(text)
    return mol is not None and mol.GetNumAtoms() > 0 and local_tu(text, data_root) is None


@contextmanager
def standard_input() -> Iterator[Path]:
    """Standard input as a temporary file, plain or gzipped, whose suffix says what `content_suffix` recognises."""
    content = sys.stdin.buffer.read()
    packed = content.startswith(b"\x1f\x8b")
    try:
        start = zlib.decompressobj(31).decompress(content, PEEK) if packed else content[:PEEK]
    except zlib.error as error:
        raise DataError(f"{STDIN}: cannot be unpacked ({error}). Send a whole gzip file, or text") from None
    with tempfile.TemporaryDirectory(prefix="asapool-") as folder:
        path = Path(folder) / f"stdin{content_suffix(start)}{'.gz' if packed else ''}"
        path.write_bytes(content)
        try:
            yield path
        except DataError as error:
            raise DataError(str(error).replace(str(path), STDIN)) from None


def content_suffix(start: bytes) -> str:
    """The suffix of a file that begins with these bytes.

    It is JSON lines if it begins with {, SDF if a structure ends (M  END, $$$$), a table if its first line has a
    separator or the name of a SMILES column, else one SMILES per line.

    >>> [content_suffix(start) for start in (b'{"nodes": 2}', b"ethanol\\n...\\nM  END\\n", b"id,smiles", b"CCO")]
    ['.jsonl', '.sdf', '.csv', '.smi']
    """
    text = start.lstrip(b"\xef\xbb\xbf \r\n")
    first = text.split(b"\n", 1)[0]
    if text.startswith(b"{"):
        return ".jsonl"
    if b"\nM  END" in start or b"\n$$$$" in start:
        return ".sdf"
    columns = (b"smiles", b"canonical_smiles", b"smi")
    return ".csv" if any(c in first for c in b",;\t") or first.strip().lower() in columns else ".smi"


def _is_file(path: Path) -> bool:
    """Whether path is a file; a pipe or device is refused, because reading it could block forever."""
    # unlike pathlib, os.path says "no" to a name that is too long for a file, such as the SMILES of a large molecule
    if exists(path) and not isfile(path) and not isdir(path):
        raise DataError(f"{path}: is a pipe or device, and a file is expected. Copy its content to a file first")
    return isfile(path)


def _refuse_unused(reading: Reading, source: Any, options: ReadOptions) -> Reading:
    """The reading itself; options that need a table of molecules are refused for another source."""
    table = _is_table(source) or source == "-" if isinstance(source, (str, PathLike)) else is_frame(source)
    if options.duplicates == "merge" and not (table and reading.graphs.recipe.get("kind") == "smiles"):
        raise DataError(
            f"{reading.graphs.name}: only rows of a table of molecules can be merged, and this is not one. Leave out "
            "duplicates='merge' (--duplicates)"
        )
    expected = bool(options.descriptors or options.rdkit_descriptors or (options.recipe or {}).get("descriptors"))
    if expected and reading.graphs.descriptors is None and len(reading.graphs):
        raise DataError(
            f"{reading.graphs.name}: descriptors need a table of molecules, and this is not one. "
            "Leave them out, or give a table"
        )
    return reading


SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


def _reader(path: Path) -> Reader:
    reader = reader_of(path)
    if reader is None:
        if path.suffix.lower() in SPREADSHEETS:
            raise DataError(f"{path}: is a spreadsheet. Save its sheet as CSV (in UTF-8), and give that file")
        if path.suffix.lower() in (".txt", ".dat"):
            raise DataError(
                f"{path}: the ending {path.suffix} says nothing about the format. Rename a table of molecules to .csv "
                "(commas, semicolons and tabs are recognised), and a list of SMILES to .smi"
            )
        raise DataError(f"{path}: no reader for {path.suffix or 'a file without a suffix'}. Expected {formats()}")
    return reader


def _is_map(path: Path) -> bool:
    """Whether a folder is a set of mapped arrays, finished or not."""
    return isdir(path) and path.name.lower().endswith(".graphs")


def _folder(path: Path, options: ReadOptions) -> Reading:
    from asapool.data.graph_files import is_graph_folder, read_graph_folder
    from asapool.data.mapped.folder import read_map
    from asapool.data.tu import read_tu

    if _is_map(path):
        return read_map(path, options)
    if is_graph_folder(path):
        return read_graph_folder(path, options)
    raw = path / "raw"  # where PyG keeps the text files
    return read_tu(raw if not any(path.glob("*_A.txt")) and raw.is_dir() else path, options)


def _objects(source: Any, options: ReadOptions) -> Reading:
    """A data frame with a column of SMILES; a list of PyG or NetworkX graphs, or of SMILES; a PyG Batch or Data."""
    if is_frame(source):
        from asapool.data.molecule_table import read_molecules

        return read_molecules(Path("data frame"), options, source)
    if hasattr(source, "edge_index"):  # iterating over them would give their tensors
        source = source.to_data_list() if hasattr(source, "to_data_list") else [source]
    if not isinstance(source, Iterable):
        raise DataError(
            f"a {type(source).__name__} is not a source of graphs. Expected {formats()}, or a list of graph objects"
        )
    graphs = [source] if hasattr(source, "to_homogeneous") else list(source)
    if not graphs:
        raise DataError("the list contains no graphs")
    if hasattr(graphs[0], "to_homogeneous"):
        raise DataError(
            f"graph 0: a {type(graphs[0]).__name__} is not supported. torch_geometric's data.to_homogeneous() makes "
            "one graph of all node types"
        )
    if isinstance(graphs[0], str):
        from asapool.data.molecule_table import read_smiles_list

        return read_smiles_list(graphs, options)
    if hasattr(graphs[0], "edge_index"):
        return Log().reading(GraphSet.from_pyg(graphs, options=options))
    return Log().reading(GraphSet.from_networkx(graphs, options=options))
