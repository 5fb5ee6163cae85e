"""Mutated input files of every kind: each is read, or refused in one sentence. A traceback is a defect.

python -m tests.fuzz_inputs 20000 [seed] [--write]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from asapool.data import load, read
from asapool.data.splits import given
from asapool.errors import AsapoolError
from asapool.experiments.plan import load_plan
from asapool.experiments.protocols import SplitFile
from asapool.training import resolve

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCS"]
TABLE = "id,smiles,label,value\n" + "".join(f"m{k},{s},{'ab'[k % 2]},{k / 7}\n" for k, s in enumerate(SMILES))
LINES = "".join(
    json.dumps({"id": f"g{k}", "edges": [[0, 1], [1, 2]], "nodes": ["C", "N", "O"], "label": "ab"[k % 2]}) + "\n"
    for k in range(8)
)
TU = {
    "DS_A.txt": "1, 2\n2, 1\n3, 4\n4, 3\n5, 6\n6, 5\n", "DS_graph_indicator.txt": "1\n1\n2\n2\n3\n3\n",
    "DS_graph_labels.txt": "1\n-1\n1\n", "DS_node_labels.txt": "0\n1\n0\n2\n1\n1\n",
    "DS_node_attributes.txt": "0.5, 1\n1.5, 2\n0, 1\n2, 2\n1, 0\n3, 1e3\n",
}  # fmt: skip
GRAPHML = """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="label" attr.type="string"/><graph edgedefault="undirected">
<node id="a"><data key="d0">C</data></node><node id="b"><data key="d0">N</data></node><edge source="a" target="b"/>
</graph></graphml>"""
CONFIG = """[data]
source = "synthetic:cycles?graphs=12&nodes=6"
[model]
method = "asap"
hidden = 8
ratio = 0.5
[train]
epochs = 2
lr = 0.01
[split]
kind = "stratified"
val = 0.1
"""
PLAN = """[plan]
name = "mine"
title = "A plan"
metric = "test"
seeds = 1
folds = 3
[[data]]
name = "cycles"
source = "synthetic:cycles?graphs=12&nodes=6"
[[row]]
name = "width {hidden}"
grid = { model = { hidden = [4, 8] } }
[[row]]
name = "no pooling"
model = { method = "none" }
on = { cycles = { train = { lr = 0.1 } } }
"""
SPLITS = json.dumps(
    [{"train": [0, 1, 2], "val": [3], "test": [4, 5]}, {"train": [3, 4, 5], "val": [1], "test": [0, 2]}]
)
PARTS = "id,part\n" + "".join(f"g{k},{('train', 'train', 'val', 'test')[k % 4]}\n" for k in range(8))
JUNK = [
    b"", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"nan", b"inf", b"-1", b"1e999", b"9" * 40, b"null", b"[]", b"{}", b'"',
    b",", b"\n", b"\r", b"\t", b"=", b"[[", b"]" * 9, b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"../../etc/passwd", b"[/b]",
    b"\x1b[31m", "é∞\u202e".encode(), b"\\ud800", b"C" * 400, b"0", b"true", b"1.5",
]  # fmt: skip


class Unchanged(random.Random):
    """A source of chance that changes nothing."""


def mutate(data: bytes, draw: random.Random) -> bytes:
    """One to three changes: a word replaced, bytes replaced, cut, repeated, or junk put in."""
    if isinstance(draw, Unchanged):
        return data
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        at, kind = draw.randrange(len(data) + 1), draw.random()
        words = [m.span() for m in re.finditer(rb"[\w.+-]+|\"[^\"]*\"", data)]
        if draw.random() < 0.6 and words:
            start, stop = draw.choice(words)
            data = data[:start] + draw.choice(JUNK) + data[stop:]
        elif kind < 0.2:
            data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        elif kind < 0.35:
            data = data[:at] + data[at + draw.randint(1, 20) :]
        elif kind < 0.45:
            data = data[:at]
        elif kind < 0.55:
            data = data[:at] + data[max(0, at - draw.randint(1, 40)) :]
        elif kind < 0.85:
            data = data[:at] + draw.choice(JUNK) + data[at + draw.choice((0, 1, 2, 5)) :]
        else:
            lines = data.split(b"\n")
            draw.shuffle(lines)
            data = b"\n".join(lines)
    return data


def tu_zip(path: Path, draw: random.Random) -> None:
    """A zip of a TU data set in which one file, or the zip itself, was changed."""
    victim = draw.choice(sorted(TU))
    with zipfile.ZipFile(path, "w") as out:
        for name, text in TU.items():
            if name != victim or draw.random() < 0.9 or isinstance(draw, Unchanged):
                out.writestr(f"DS/{name}", mutate(text.encode(), draw) if name == victim else text)
    if draw.random() < 0.2:
        path.write_bytes(mutate(path.read_bytes(), draw))


def sdf() -> str:
    """Three molecules as an SDF file."""
    from rdkit import Chem

    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(s)) for s in SMILES[:3]]
    return "".join(f"{block}> <label>\n{'ab'[k % 2]}\n\n$$$$\n" for k, block in enumerate(blocks))


def kinds(folder: Path) -> dict[str, tuple[Path, Callable[[Path, random.Random], None], Callable[[Path], object]]]:
    """Name → the file, how a mutated one is written, what reads it."""
    lines = folder / "known.jsonl"
    lines.write_text(LINES)
    graphs, xml, smiles = load(lines), folder / "xml", "\n".join(f"{s} m{k}" for k, s in enumerate(SMILES))
    xml.mkdir()

    def written(text: str) -> Callable[[Path, random.Random], None]:
        return lambda path, draw: (path.write_bytes(mutate(text.encode(), draw)), None)[1]

    return {
        "tu": (folder / "DS.zip", tu_zip, read),
        "csv": (folder / "t.csv", written(TABLE), lambda path: read(path, skip_invalid=True)),
        "tsv": (folder / "t.tsv", written(TABLE.replace(",", "\t")), read),
        "csv, value": (folder / "v.csv", written(TABLE), lambda path: read(path, target="value")),
        "json lines": (folder / "g.jsonl", written(LINES), read),
        "json lines, skipping": (folder / "s.jsonl", written(LINES), lambda path: read(path, skip_invalid=True)),
        "sdf": (folder / "m.sdf", written(sdf()), lambda path: read(path, skip_invalid=True)),
        "graphml": (xml / "g.graphml", written(GRAPHML), lambda path: read(path.parent, labels="optional")),
        "smiles": (folder / "m.smi", written(smiles), lambda path: read(path, labels="optional", skip_invalid=True)),
        "config": (folder / "c.toml", written(CONFIG), lambda path: resolve({}, path)),
        "plan": (folder / "p.toml", written(PLAN), load_plan),
        "published splits": (folder / "s.json", written(SPLITS), SplitFile.read),
        "split file": (folder / "p.csv", written(PARTS), lambda path: given(graphs, path)),
    }


def main(count: int, seed: int, keep: bool = False) -> int:
    """Try `count` files, print what became of them and the first traceback of each place, and count the places."""
    warnings.simplefilter("ignore")
    draw, outcome, places, slow = random.Random(seed), Counter(), {}, []
    with tempfile.TemporaryDirectory() as name:
        table = kinds(Path(name))
        for path, write, read_it in table.values():  # each must be right before it is changed
            write(path, Unchanged())
            read_it(path)
        for number in range(count):
            kind = sorted(table)[number % len(table)]
            path, write, read_it = table[kind]
            write(path, draw)
            began = time.perf_counter()
            try:
                read_it(path)
                outcome[kind, "read"] += 1
            except AsapoolError as error:
                outcome[kind, "refused"] += 1
                if "\n" in str(error) or not str(error):
                    places.setdefault(f"{kind}: not one sentence: {str(error)[:200]!r}", path.read_bytes())
            except Exception as error:
                outcome[kind, "TRACEBACK"] += 1
                frames = [f for f in traceback.extract_tb(error.__traceback__) if "asapool" in f.filename]
                where = f"{frames[-1].filename}:{frames[-1].lineno}"
                places.setdefault(f"{kind}: {error!r:.150} at {where}", path.read_bytes())
            if time.perf_counter() - began > 5:
                slow.append((kind, round(time.perf_counter() - began, 1)))
            if number % 500 == 499:
                print(f"{number + 1} of {count} files, {len(places)} places", file=sys.stderr, flush=True)
    for (kind, what), times in sorted(outcome.items()):
        print(f"{kind:22} {what:10} {times}")
    for where, data in places.items():
        print(f"\n{where}\n    {data[:300]!r}")
    print(f"\nslower than 5 s: {slow}")
    if keep:
        from benchmarks.measuring import machine, write

        outcomes = {kind: {what: n for (k, what), n in sorted(outcome.items()) if k == kind} for kind in sorted(table)}
        write(
            "fuzz_inputs",
            {
                "what": "mutated input files of every kind",
                "command": f"python -m tests.fuzz_inputs {count} {seed} --write",
                "files": count,
                "outcomes": outcomes,
                "tracebacks": sum(n for (_, what), n in outcome.items() if what == "TRACEBACK"),
                "places": list(places),
                "slower_than_5_s": slow,
                "machine": machine(),
            },
        )
    return len(places)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--write", action="store_true", help="keep the result in benchmarks/results")
    args = parser.parse_args()
    sys.exit(1 if main(args.count, args.seed, args.write) else 0)
