"""The registry of methods: every list of methods in the package is made from it.

A method is one `Method` entry. Those of asapool are listed below; other packages add theirs with `register_method` or
with an entry point of the group "asapool.methods" (see CONTRIBUTING.md). Worker processes and the command line find
the methods of other packages by their entry points, so an installed package should have one.

Builders are given as "module:function" and imported on first use, so that listing the methods loads nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from asapool.errors import ConfigError, choose
from asapool.models.method_entry import Kind, Method, Trainer

__all__ = [
    "GROUP", "PLUS", "PLUS_SCHEDULE", "WIDEST", "Kind", "Method", "Trainer", "method", "method_names", "methods",
    "register", "register_method",
]  # fmt: skip

GROUP = "asapool.methods"  # of entry points
WIDEST = 256  # maximum output width of a global pooling (appendix of the paper)

# settings of asap+ and none+, chosen on validation parts of NCI1, PROTEINS and DD (docs/results.md)
PLUS: dict[str, Any] = {
    "levels": 2, "conv": "gin", "first_convs": 2, "level_convs": 1, "norm": "batch", "residual": True,
    "readouts": ("mean", "max", "sum"), "level0": True, "counts": "wl", "edge_features": True,
    "conv_dropout": 0.1, "count_dropout": 0.5, "readout_dropout": 0.3,
}  # fmt: skip
PLUS_SCHEDULE: dict[str, Any] = {
    "optimizer": "adamw", "schedule": "onecycle", "epochs": 40, "batch_size": 64, "lr": 0.005, "weight_decay": 0.1,
    "label_smoothing": 0.05, "clip": 2.0, "select_by": "loss",
}  # fmt: skip

_BUILTIN = (
    Method(
        name="asap+",
        kind="hierarchical",
        sentence="ASAP in a stronger network: GIN blocks with batch norm and residuals, readouts at every level, "
        "subtree counts, edge features.",
        paper="Ranjan, Sanyal, Talukdar: ASAP, AAAI 2020 (the pooling); Xu et al.: How Powerful are Graph Neural "
        "Networks?, ICLR 2019; Shervashidze et al.: Weisfeiler-Lehman Graph Kernels, JMLR 2011",
        build="asapool.models.plus:asap_plus",
        defaults=PLUS,
        schedule=PLUS_SCHEDULE,
        builtin=True,
    ),
    Method(
        name="asap",
        kind="hierarchical",
        sentence="Forms a cluster around every node by attention, keeps those that stand out, and connects them by "
        "their overlap.",
        paper="Ranjan, Sanyal, Talukdar: ASAP: Adaptive Structure Aware Pooling, AAAI 2020",
        pool="asapool.models.pools:asap",
        builtin=True,
    ),
    Method(
        name="topk",
        kind="hierarchical",
        sentence="Keeps the nodes that lie furthest along one learned direction.",
        paper="Gao, Ji: Graph U-Nets, ICML 2019",
        pool="asapool.models.pools:topk",
        builtin=True,
    ),
    Method(
        name="sagpool",
        kind="hierarchical",
        sentence="Keeps the nodes to which a graph convolution gives the highest score.",
        paper="Lee, Lee, Kang: Self-Attention Graph Pooling, ICML 2019",
        pool="asapool.models.pools:sagpool",
        builtin=True,
    ),
    Method(
        name="diffpool",
        kind="hierarchical",
        sentence="Assigns every node softly to a fixed number of clusters, with a link prediction and an entropy loss.",
        paper="Ying et al.: Hierarchical Graph Representation Learning with Differentiable Pooling, NeurIPS 2018",
        pool="asapool.models.pools:diffpool",
        no_levels="DiffPool assigns every node to a fixed number of clusters without a centre",
        no_padding="DiffPool keeps its clusters in the rows of a packed batch",
        fixed_size=True,
        builtin=True,
    ),
    Method(
        name="set2set",
        kind="global",
        sentence="Reads all nodes several times with attention that an LSTM controls.",
        paper="Vinyals, Bengio, Kudlur: Order Matters: Sequence to Sequence for Sets, ICLR 2016",
        pool="asapool.models.pools:set2set",
        no_levels="Set2Set reads all nodes at once",
        no_padding="Set2Set is a layer of torch_geometric that reads the rows of a packed batch",
        max_hidden=WIDEST // 2,
        builtin=True,
    ),
    Method(
        name="global-attention",
        kind="global",
        sentence="Sums all nodes, weighted by one learned attention.",
        paper="Li et al.: Gated Graph Sequence Neural Networks, ICLR 2016",
        pool="asapool.models.pools:global_attention",
        no_levels="Global attention sums all nodes at once",
        no_padding="Global attention is a layer of torch_geometric that reads the rows of a packed batch",
        max_hidden=WIDEST,
        builtin=True,
    ),
    Method(
        name="sortpool",
        kind="global",
        sentence="Sorts the nodes by their last feature and concatenates the first few.",
        paper="Zhang et al.: An End-to-End Deep Learning Architecture for Graph Classification, AAAI 2018",
        pool="asapool.models.pools:sortpool",
        no_levels="SortPool reads the first nodes of a sorted list",
        no_padding="SortPool ranks the rows of a packed batch",
        max_hidden=WIDEST,
        builtin=True,
    ),
    Method(
        name="none",
        kind="sanity",
        sentence="Convolves without pooling and reads out after every layer: the baseline for pooling.",
        paper="Lee, Lee, Kang: Self-Attention Graph Pooling, ICML 2019 (the architecture, without its pooling)",
        pool="asapool.models.pools:none",
        no_levels="This model does not pool",
        builtin=True,
    ),
    Method(
        name="none+",
        kind="sanity",
        sentence="The network of asap+ without its pooling: the difference is what pooling gains.",
        paper="As asap+, without the pooling",
        build="asapool.models.plus:none_plus",
        no_levels="This model does not pool",
        defaults=PLUS,
        schedule=PLUS_SCHEDULE,
        builtin=True,
    ),
    Method(
        name="mlp",
        kind="sanity",
        sentence="Sums the node features and ignores the edges: the baseline for using structure.",
        paper="Errica et al.: A Fair Comparison of Graph Neural Networks for Graph Classification, ICLR 2020",
        build="asapool.models.classifier:mlp",
        no_levels="This model sums the nodes and ignores the edges",
        builtin=True,
    ),
    Method(
        name="wl",
        kind="baseline",
        sentence="Counts Weisfeiler-Lehman subtrees and classifies them with a linear SVM.",
        paper="Shervashidze et al.: Weisfeiler-Lehman Graph Kernels, JMLR 2011",
        build="asapool.models.counting:WLSubtree",
        no_levels="This model counts subtrees and does not pool",
        no_padding="It is not a neural network",
        trainer="direct",
        builtin=True,
    ),
    Method(
        name="ecfp",
        kind="baseline",
        sentence="Counts the circular substructures of molecules (ECFP4) and classifies them with a random forest.",
        paper="Rogers, Hahn: Extended-Connectivity Fingerprints, J. Chem. Inf. Model. 2010",
        build="asapool.models.counting:Ecfp",
        molecules_only=True,
        no_levels="This model counts substructures and does not pool",
        no_padding="It is not a neural network",
        trainer="direct",
        builtin=True,
    ),
    Method(
        name="histogram",
        kind="baseline",
        sentence="Counts node labels and classifies the counts with a random forest: the baseline for using structure.",
        paper="The usual structure-free baseline, as in Errica et al., ICLR 2020",
        build="asapool.models.counting:Histogram",
        no_levels="This model counts node labels and does not pool",
        no_padding="It is not a neural network",
        trainer="direct",
        builtin=True,
    ),
    Method(
        name="majority",
        kind="baseline",
        sentence="Predicts the most frequent class of the training graphs: the baseline for every method.",
        paper="The usual baseline; scikit-learn's DummyClassifier",
        build="asapool.models.direct:Majority",
        no_levels="This model ignores the graph",
        no_padding="It is not a neural network",
        trainer="direct",
        builtin=True,
    ),
)
_TABLE = {entry.name: entry for entry in _BUILTIN}
_plugins_loaded = False

Builder = TypeVar("Builder", bound=Callable[..., Any])


def methods() -> list[Method]:
    """All methods: those of the paper's table in its order, then the baselines, then those of other packages.

    >>> [method.name for method in methods() if method.kind == "global"]
    ['set2set', 'global-attention', 'sortpool']
    """
    _load_plugins()
    return list(_TABLE.values())


def method_names(*kinds: Kind, trainer: Trainer | None = None, builtin: bool = False) -> tuple[str, ...]:
    """Names of all methods, or of some kinds; `builtin` leaves out those of other packages.

    >>> method_names("sanity")
    ('none', 'none+', 'mlp')
    """
    chosen = [m for m in methods() if (not kinds or m.kind in kinds) and (trainer is None or m.trainer == trainer)]
    return tuple(m.name for m in chosen if m.builtin or not builtin)


def method(name: str, setting: str = "method") -> Method:
    """The method of that name; the error message lists the known ones.

    Args:
        name: such as "asap".
        setting: what the error message calls it.
    """
    if not isinstance(name, str) or name not in _TABLE:
        choose(setting, name, method_names())
    return _TABLE[name]


def register(entry: Method) -> Method:
    """Add a method to the registry; a name that another method has is refused."""
    known = _TABLE.get(entry.name)
    if known is not None and (known.builtin or (known.pool, known.build) != (entry.pool, entry.build)):
        raise ConfigError(f"there is already a method {entry.name!r}. Choose another name")
    _TABLE[entry.name] = entry
    return entry


def register_method(
    name: str, *, kind: Kind, sentence: str, paper: str = "", makes: Literal["pool", "model"] = "pool", **fields: Any
) -> Callable[[Builder], Builder]:
    """Decorator that adds a method to the registry.

    Args:
        name: what `--method` and `ModelConfig.method` take.
        kind: "hierarchical", "global" or "baseline", see `Method`.
        sentence: what it does, for `asapool methods` and the pages.
        paper: where it was published.
        makes: "pool": the function is `pool(config, level)` and returns a pooling layer; "model": it is
            `build(config, shape)` and returns a whole model.
        fields: further fields of `Method`.

    >>> from asapool.models.pools import topk
    >>> @register_method("doctest-pool", kind="hierarchical", sentence="Keeps what TopK keeps.")
    ... def pool(config, level):
    ...     return topk(config, level)
    >>> _TABLE.pop("doctest-pool").kind
    'hierarchical'
    """
    choose("makes", makes, ("pool", "model"))

    def add(function: Builder) -> Builder:
        builder: dict[str, Any] = {"pool" if makes == "pool" else "build": function}
        register(Method(name=name, kind=kind, sentence=sentence, paper=paper, **builder, **fields))
        return function

    return add


def _load_plugins() -> None:
    """Import the methods of installed packages, once; one that fails is left out with a warning."""
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            loaded = point.load()  # a Method, or something whose import registers it
            if isinstance(loaded, Method):
                register(loaded)
            if point.name not in _TABLE:
                raise ConfigError(f"{point.value} is neither a Method nor registers one of that name")
        except Exception as error:  # an error in another package must not stop asapool
            warnings.warn(
                f"the method {point.name!r} of the entry point {point.value} is left out: "
                f"{type(error).__name__}: {error}",
                stacklevel=2,
            )
