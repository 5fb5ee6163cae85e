"""TU data sets: NAME_A.txt, NAME_graph_indicator.txt and related text files, in a folder or a zip.

Lines of A are "source, target", with nodes numbered from 1 through all graphs; line v of every node file describes node
v, line g of graph_labels graph g, line e of every edge file line e of A. Any line endings and spaces are accepted.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.archive import Files, open_files
from asapool.data.classes import UNLABELLED, as_text, check_labels, number_classes
from asapool.data.csr import Floats, Ints, pack_edges, pointer
from asapool.data.features import Nodes, Recipe, check_recipe, columns, resolve, write_recipe
from asapool.data.graphset import GraphSet
from asapool.data.reading import Log, Reading, ReadOptions
from asapool.data.targets import Labelled, Target, empty_values, read_targets
from asapool.data.tu_numbers import expect_lines, read_table
from asapool.errors import DataError

# The features that the authors use are the default. For other sets: labels, else attributes, else degrees.
AUTHORS = {"PROTEINS": "labels", "NCI1": "labels", "NCI109": "labels", "DD": "labels", "FRANKENSTEIN": "attributes"}


def read_tu(path: Path, options: ReadOptions | None = None) -> Reading:
    """Read a TU folder or zip into one packed set."""
    options = options or ReadOptions()
    with open_files(path) as files:
        log = Log()
        return log.reading(_Reader(files, path, options, log).read())


class _Reader:
    """Reads the files of one data set; a part such as "node_labels" means the file PREFIX_node_labels.txt."""

    def __init__(self, files: Files, path: Path, options: ReadOptions, log: Log) -> None:
        self.files, self.options, self.log = files, options, log
        names = files.names()
        edge_files = [n for n in names if n.endswith("_A.txt") and not PurePosixPath(n).name.startswith(".")]
        prefixes = [n.removesuffix("_A.txt") for n in edge_files]
        matching = [p for p in prefixes if PurePosixPath(p).name == path.stem]
        if not prefixes:
            raise DataError(
                f"{path}: no file ends with _A.txt, so this is not a TU data set. Give the folder that has NAME_A.txt"
            )
        if len(prefixes) > 1 and len(matching) != 1:
            raise DataError(f"{path}: several data sets, {', '.join(sorted(prefixes))}. Put each into its own folder")
        self.prefix = matching[0] if matching else prefixes[0]
        self.name = PurePosixPath(self.prefix).name
        self.present = set(names)

    def has(self, part: str) -> bool:
        return f"{self.prefix}_{part}.txt" in self.present

    def file(self, part: str) -> str:
        return f"{self.name}_{part}.txt"

    def table(self, part: str, dtype: type[Any], columns: int | None = None) -> npt.NDArray[Any]:
        if not self.has(part):
            raise DataError(f"{self.files.where}: {self.file(part)} is missing. Fetch the data set again")
        return read_table(self.files.blocks(f"{self.prefix}_{part}.txt"), self.file(part), dtype, columns)

    def read(self) -> GraphSet:
        graph, ptr, places = self.indicator()
        N = len(graph)
        source, target = self.edges(graph)
        edge_attr, edge_tables, edge_width = self.edge_attr(len(source))
        packed = pack_edges(source, target, N, None, edge_attr, self.options.repeats or "drop")
        if len(packed.col) < len(source) and packed.weight is None:
            self.log.notes.append(
                f"{self.name}: {len(source) - len(packed.col):,} of {len(source):,} edges are listed more than once; "
                "the repeats were dropped (--repeats sum, or repeats='sum', adds them up as weights)"
            )
        nodes, features = self.nodes(np.diff(packed.rowptr), N)
        recipe: Recipe
        if self.options.recipe is not None:
            recipe = dict(self.options.recipe)
        else:
            recipe = write_recipe(resolve(features, nodes, self.name), nodes, self.name)
            recipe |= {"edge_labels": edge_tables, "edge_attributes": edge_width}
        x, feature_names = columns(recipe, nodes, self.name)
        labelled = self.targets(places)
        classes = labelled.target.classes if labelled.target.kind == "classification" else ()
        self.log.notes.extend(labelled.notes)
        recipe |= {"classes": list(classes)}
        if labelled.target.kind != "classification":
            recipe["task"] = labelled.target.to_dict()
        return GraphSet(
            x=x, ptr=ptr, rowptr=packed.rowptr, col=packed.col, weight=packed.weight, edge_attr=packed.edge_attr,
            y=labelled.y, target=labelled.target,
            class_names=classes, feature_names=feature_names, name=self.name,
            ids=tuple(map(str, (places + 1).tolist())), named=False, places=places,
            recipe=recipe,
        )  # fmt: skip

    def indicator(self) -> tuple[Ints, Ints, Ints]:
        """The graph of every node (N,), from 0; the first node of every graph; its index in the files, from 0.

        Graphs without nodes are left out, with a note.
        """
        graph: Ints = self.table("graph_indicator", np.int64, 1)[:, 0]
        step = np.diff(graph, prepend=0)
        wrong = np.flatnonzero((step < 0) | (graph < 1))
        if len(wrong):
            v = int(wrong[0])
            before = int(graph[v - 1]) if v else 0
            at = f"{self.file('graph_indicator')}, line {v + 1}"
            raise DataError(
                f"{at}: graph {graph[v]} follows graph {before}, but numbers start at 1 and never decrease. "
                "Sort the nodes by graph"
            )
        numbers, graph = np.unique(graph, return_inverse=True)
        self.listed = int(numbers[-1])
        empty = self.listed - len(numbers)
        if empty:
            first = int(np.flatnonzero(numbers != np.arange(1, len(numbers) + 1))[0]) + 1
            self.log.notes.append(
                f"{self.name}: {empty:,} of {self.listed:,} graphs have no nodes and were left out, "
                f"the first of them graph {first}"
            )
        return graph, pointer(np.bincount(graph)), numbers - 1

    def edges(self, graph: Ints) -> tuple[Ints, Ints]:
        """Source and target of every edge, numbered from 0; both must be in the same graph."""
        pairs = self.table("A", np.int64, 2)
        N = len(graph)
        wrong = np.flatnonzero(((pairs < 1) | (pairs > N)).any(axis=1))
        if len(wrong):
            e = int(wrong[0])
            bad = next(v for v in pairs[e].tolist() if not 1 <= v <= N)
            listed = f"but {self.file('graph_indicator')} lists {N}" if bad > N else "but nodes are counted from 1"
            raise DataError(f"{self.file('A')}, line {e + 1}: node {bad}, {listed}. Fetch the data set again")
        pairs -= 1
        source, target = pairs[:, 0], pairs[:, 1]
        apart = np.flatnonzero(graph[source] != graph[target])
        if len(apart):
            e = int(apart[0])
            a, b = int(source[e]), int(target[e])
            raise DataError(
                f"{self.file('A')}, line {e + 1}: nodes {a + 1} and {b + 1} are in graphs {graph[a] + 1} and "
                f"{graph[b] + 1}, but an edge must stay in its graph. Fetch the data set again"
            )
        return source, target

    def nodes(self, degree: Ints, N: int) -> tuple[Nodes, str | None]:
        """Node labels and attributes, as the choice of features needs them, and that choice."""
        recipe = self.options.recipe
        if recipe is not None:
            check_recipe(recipe, "graph")
        features = recipe["features"] if recipe is not None else self.options.features
        if features in (None, "auto"):
            features = AUTHORS.get(self.name, "labels")
            features = features if self.has(f"node_{features}") else None
        labels, attributes = [], None
        because = f"{self.file('graph_indicator')} lists {N} nodes"
        # if the chosen kind is absent, the other one is read, so that the error message can suggest it
        no_labels = features == "labels" and not self.has("node_labels")
        no_attributes = features == "attributes" and not self.has("node_attributes")
        if self.has("node_labels") and (features in ("labels", "both") or no_attributes):
            table = self.table("node_labels", np.int64)
            expect_lines(table, self.file("node_labels"), N, because)
            labels = list(table.T)
        if self.has("node_attributes") and (features in (None, "attributes", "both") or no_labels):
            attributes = self.table("node_attributes", np.float32)
            expect_lines(attributes, self.file("node_attributes"), N, because)
        names = tuple(f"attribute{k}" for k in range(0 if attributes is None else attributes.shape[1]))
        return Nodes(degree, labels, attributes, names), features

    def edge_attr(self, E: int) -> tuple[Floats | None, list[list[str]], int]:
        """Edge attributes, then one-hot edge labels (E', Fe); the known labels; the number of attribute columns."""
        recipe = self.options.recipe
        because = f"{self.file('A')} lists {E} edges"
        attributes, labels = None, []
        if self.has("edge_attributes") and (recipe is None or recipe.get("edge_attributes")):
            attributes = self.table("edge_attributes", np.float32)
            expect_lines(attributes, self.file("edge_attributes"), E, because)
        if self.has("edge_labels") and (recipe is None or recipe.get("edge_labels")):
            table = self.table("edge_labels", np.int64)
            expect_lines(table, self.file("edge_labels"), E, because)
            labels = list(table.T)
        if not labels and attributes is None:
            return None, [], 0
        width = 0 if attributes is None else int(attributes.shape[1])
        names = tuple(f"attribute{k}" for k in range(width))
        edges = Nodes(np.zeros(E, np.int64), labels, attributes, names, noun="edge")
        kind = "both" if labels and width else "labels" if labels else "attributes"
        edge_recipe = write_recipe(kind, edges, self.name)
        if recipe is not None:
            edge_recipe |= {"labels": recipe["edge_labels"]} if labels else {}
            edge_recipe |= {"attributes": [f"attribute{k}" for k in range(recipe["edge_attributes"])]} if width else {}
        return columns(edge_recipe, edges, self.name)[0], edge_recipe.get("labels", []), width

    def targets(self, places: Ints) -> Labelled:
        """The class of every graph; or its graph_attributes, for regression or if there are no classes."""
        task, known, rule = self.options.known_task, self.options.known_target, self.options.label_rule
        present = self.has("graph_attributes")
        if task == "multilabel":
            raise DataError(
                f"{self.files.where}: TU data sets have classes or measured values, so --task multilabel does not apply"
            )
        if task != "regression" and (task is not None or not present or self.has("graph_labels")):
            y, names = self.classes(places)
            return Labelled(y, Target(classes=names))
        if rule == "ignored" or (not present and rule == "optional"):
            target = known or Target(kind="regression", names=("attribute0",))
            return Labelled(empty_values(target, len(places)), target)
        table = self.table("graph_attributes", np.float32)
        file = self.file("graph_attributes")
        if self.listed == len(places) or len(table) < self.listed:
            expect_lines(table, file, self.listed, f"{self.file('graph_indicator')} lists {self.listed} graphs")
        cells = {f"attribute{k}": [repr(v) for v in column.tolist()] for k, column in enumerate(table[places].T)}
        return read_targets(cells, file, rule=rule, task="regression", known=known)

    def classes(self, places: Ints) -> tuple[Ints, tuple[str, ...]]:
        """The class of every graph, and the class names; places are the indices of the graphs that have nodes."""
        G = len(places)
        rule, file = self.options.label_rule, self.file("graph_labels")
        if rule == "ignored" or (rule == "optional" and not self.has("graph_labels")):
            return np.full(G, -1, np.int64), tuple(self.options.classes or ())
        if not self.has("graph_labels"):
            raise DataError(f"{self.files.where}: {file} is missing, so there are no class labels. Add it {UNLABELLED}")
        table = self.table("graph_labels", np.int64, 1)
        if self.listed == G or len(table) < self.listed:  # the last graphs of the file may have no nodes
            expect_lines(table, file, self.listed, f"{self.file('graph_indicator')} lists {self.listed} graphs")
        labels = [as_text(v) for v in table[places, 0].tolist()]
        y, names = number_classes(labels, file, self.options.classes, (places + 1).tolist())
        check_labels(y, file, rule)
        return y, names
