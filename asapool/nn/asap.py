"""Adaptive Structure Aware Pooling, the paper's operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Graph, Pattern
from asapool.kernels.ratio import check_ratio
from asapool.nn.attention import Assignment, ClusterAttention, DynamicAttention, Master2Token, Source2Token, Token2Token
from asapool.nn.convolutions import GCN
from asapool.nn.edge_masks import mask_memberships, unweighted
from asapool.nn.hooks import has_hooks, is_plain
from asapool.nn.inner import check_result, make_gnn
from asapool.nn.inputs import check_belongs, check_count, check_dtype, check_features, check_switch, pack_batch
from asapool.nn.leconv import BasicLEConv, LEConv
from asapool.nn.semantics import is_pyg_gcn, semantics_named, translate
from asapool.nn.step import Pooled, PooledWithFeatures, PoolStep

Formed = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # x_p, α, φ, the kept centres, their pointer
ATTENTIONS = {"m2t": Master2Token, "t2t": Token2Token, "s2t": Source2Token, "dynamic": DynamicAttention}


class ASAPooling(nn.Module):
    """Pool every graph of a batch to its fittest clusters.

    x' = GCN(x) · α_ij = softmax_j(wᵀσ(W m_i ‖ x'_j)), m_i = max_{j∈c_h(i)} x'_j · x^c_i = Σ_j α_ij x_j ·
    φ_i = sigmoid(LEConv(x^c)_i) · keep the top ⌈kN⌉ of each graph · X^p = φ ⊙ x^c of the kept · A^p = Ŝᵀ(A + I)Ŝ

    Args:
        in_channels: F, features per node.
        ratio: fraction k of clusters kept, or a whole number of them.
        GNN: a class to use for x' instead of GCN, with the interface of torch_geometric's convolutions.
        dropout: on α, while training.
        negative_slope: of the attention's σ = LeakyReLU.
        add_self_loops: whether to keep the pooled diagonal under "pyg".
        hops: radius h of a cluster.
        attention: "m2t", "t2t", "s2t", or "dynamic" with the score wᵀσ(W m_i + U x'_j), where the query matters.
        master: "max" or "mean", for m2t and dynamic.
        fitness: "leconv", "basic-leconv" or "gcn".
        aggregate: where the cluster features x^c are used: in "both" fitness and representation, in the representation
            only ("cluster"), or in neither ("none", then both use x).
        assign: "clusters", or "members" for memberships in the kept clusters that sum to 1 for every node,
            M_jp = φ_p α_pj / Σ_q φ_q α_qj; then X^p = Mᵀx and A^p = Mᵀ(A + I)M.
        soft_edges: A^p as above; False = only the input's edges between kept nodes.
        max_neighbours: keep at most this many of the strongest pooled edges per cluster.
        semantics: "paper", "authors" or "pyg"; see docs/semantics.md.
        backend: "auto", "reference" or "fused"; see asapool.kernels.
        **kwargs: options of GNN.

    >>> pool = ASAPooling(8, ratio=0.5)
    >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> x, edge_index, edge_weight, batch, perm = pool(torch.randn(4, 8), path)
    >>> x.shape, batch.tolist(), edge_weight.requires_grad
    (torch.Size([2, 8]), [0, 0], True)
    """

    def __init__(
        self,
        in_channels: int,
        ratio: float | int = 0.5,
        GNN: Callable[..., nn.Module] | None = None,
        dropout: float = 0.0,
        negative_slope: float = 0.2,
        add_self_loops: bool = False,
        *,
        hops: int = 1,
        attention: Literal["m2t", "t2t", "s2t", "dynamic"] = "m2t",
        master: Literal["max", "mean"] = "max",
        fitness: Literal["leconv", "basic-leconv", "gcn"] = "leconv",
        aggregate: Literal["both", "cluster", "none"] = "both",
        assign: Literal["clusters", "members"] = "clusters",
        soft_edges: bool = True,
        max_neighbours: int | None = None,
        semantics: Literal["paper", "authors", "pyg"] = "paper",
        backend: Literal["auto", "reference", "fused"] = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if kwargs and GNN is None:
            raise ConfigError(
                f"ASAPooling does not know the option {next(iter(kwargs))!r}; only GNN= takes further ones"
            )
        self.rules = semantics_named(semantics)
        self.in_channels, self.ratio = check_count("in_channels", in_channels), check_ratio(ratio)
        self.hops = check_count("hops", hops)
        self.aggregate = choose("aggregate", aggregate, ("both", "cluster", "none"))
        self.assign = choose("assign", assign, ("clusters", "members"))
        if assign == "members" and aggregate == "none":
            raise ConfigError('assign="members" builds clusters from their members, so aggregate must not be "none"')
        self.soft_edges = check_switch("soft_edges", soft_edges)
        self.max_neighbours = None if max_neighbours is None else check_count("max_neighbours", max_neighbours)
        self.add_self_loops = check_switch("add_self_loops", add_self_loops)
        self.semantics, self.GNN = semantics, GNN
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.inner = self._make_inner(GNN, kwargs)
        self.attention = self._make_attention(attention, master, negative_slope, dropout)
        self.fitness: nn.Module = self._make_fitness(fitness)

    def _make_inner(self, GNN: Callable[..., nn.Module] | None, kwargs: dict[str, Any]) -> nn.Module | None:
        F = self.in_channels
        if GNN is None:
            return GCN(F, F, loops=self.rules.loops, backend=self.backend) if self.rules.inner_gcn else None
        if GNN is GCN:
            return GCN(F, F, **{"loops": self.rules.loops, "backend": self.backend, **kwargs})
        if is_pyg_gcn(GNN) and not kwargs:  # GCNConv with its defaults equals asapool's GCN, which is faster
            return GCN(F, F, loops=self.rules.loops, backend=self.backend)
        return make_gnn(GNN, F, kwargs)

    def _make_attention(self, attention: str, master: str, negative_slope: float, dropout: float) -> ClusterAttention:
        choose("attention", attention, tuple(ATTENTIONS))
        choose("master", master, ("max", "mean"))
        options: dict[str, Any] = {"negative_slope": negative_slope, "dropout": dropout, "backend": self.backend}
        if attention != "dynamic":
            options["sigma"] = self.rules.sigma
        if attention in ("m2t", "dynamic"):
            options["master"] = master
        layer: ClusterAttention = ATTENTIONS[attention](self.in_channels, **options)
        return layer

    def _make_fitness(self, fitness: str) -> LEConv | BasicLEConv | GCN:
        choose("fitness", fitness, ("leconv", "basic-leconv", "gcn"))
        if fitness == "leconv":
            return LEConv(self.in_channels, 1, backend=self.backend)
        if fitness == "basic-leconv":
            return BasicLEConv(self.in_channels, 1, backend=self.backend)
        return GCN(self.in_channels, 1, loops=self.rules.loops, backend=self.backend)

    @property
    def dropout(self) -> float:
        """Dropout probability of the memberships, while training."""
        return self.attention.dropout

    @dropout.setter
    def dropout(self, p: float) -> None:
        self.attention.dropout = p

    @property
    def negative_slope(self) -> float:
        """Negative slope of the attention's LeakyReLU."""
        return self.attention.negative_slope

    @negative_slope.setter
    def negative_slope(self, slope: float) -> None:
        self.attention.negative_slope = slope

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        for part in (self.inner, self.attention, self.fitness):
            reset = getattr(part, "reset_parameters", None)
            if callable(reset):
                reset()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None, *,
        edge_attr: Tensor | None = None,
    ) -> Pooled | PooledWithFeatures:  # fmt: skip
        """Pool a batch in torch_geometric's form.

        Args:
            x: (N, F).
            edge_index: (2, E), or a sparse adj.t().
            edge_weight: (E,), ones if not given.
            batch: (N,) the graph of each node, one graph if not given.
            edge_attr: (E, D) edge features; the pooled edges have averages of them.

        Returns:
            The pooled batch with five fields; with edge_attr a sixth, the pooled edge features.
        """
        step = self._step(x, edge_index, edge_weight, batch, edge_attr)
        return step.pooled() if edge_attr is None else step.pooled_with_features()

    def explain(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None, *,
        edge_attr: Tensor | None = None,
    ) -> PoolStep:  # fmt: skip
        """The same step with all intermediate values: memberships, fitness, kept centres, pooled graph."""
        return self._step(x, edge_index, edge_weight, batch, edge_attr).fittest_first()

    def _step(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None, edge_attr: Tensor | None
    ) -> PoolStep:
        packed = pack_batch(x, edge_index, edge_weight, batch, self.in_channels, self.backend, edge_attr)
        check_dtype(packed.x, getattr(self.attention, "w", None))
        return self.step(packed.x, packed.graph, order=packed.order, mask=packed.mask)

    def step(
        self, x: Tensor, graph: Graph, *, edges: bool = True, order: Tensor | None = None, mask: Tensor | None = None
    ) -> PoolStep:
        """Pool a packed graph; edges=False leaves out the pooled edges, mask is an explainer's (see nn.explainable)."""
        if x.size(-1) != self.in_channels or not (x.dim() == 2 or kernels.is_padded(graph)):
            check_features(x, self.in_channels)
        pattern = graph.pattern
        check_belongs(x, pattern)
        clusters = kernels.reach(pattern, self.hops, backend=self.backend)
        count = kernels.kept(pattern.ptr, self.ratio)
        formed = self._form_fused(x, graph, clusters, count) if mask is None else None
        x_p, alpha, phi, perm, ptr = self._form(x, graph, clusters, count, mask) if formed is None else formed
        assignment, members = Assignment(clusters, alpha), None
        if self.assign == "members":
            members = self._members(graph, assignment, phi, perm, ptr)
            x_p = kernels.gather(*members, x, torch.ones_like(phi), perm, backend=self.backend)
        S = assignment if members is None else members
        return PoolStep(
            before=graph,
            x_before=x,
            assignment=assignment,
            members=members,
            aggregate=self.aggregate,
            phi=phi,
            perm=perm,
            ptr=ptr,
            x=x_p,
            after=self._edges(graph, S, perm, ptr) if edges else None,
            order=order,
            backend=self.backend,
        )

    def _form(self, x: Tensor, graph: Graph, clusters: Pattern, count: Tensor, mask: Tensor | None) -> Formed:
        """Memberships, fitness, the kept clusters and their features, step by step."""
        alpha = self.attention(self._inner(x, graph), clusters).alpha
        if mask is not None:
            alpha = mask_memberships(clusters, alpha, graph.pattern, mask)
        phi = self._phi(x, graph, clusters, alpha, mask)
        fittest, ptr = kernels.select(phi, graph.pattern.ptr, count, backend=self.backend)
        perm = fittest.sort().values  # keeps neighbours close together in memory, level after level
        if self.assign == "members":
            x_p = x[:0]  # computed from the members afterwards
        elif self.aggregate == "none":
            x_p = kernels.gate(x, phi, perm, backend=self.backend)
        else:
            x_p = kernels.gather(clusters, alpha, x, phi, perm, backend=self.backend)
        return x_p, alpha, phi, perm, ptr

    def _form_fused(self, x: Tensor, graph: Graph, clusters: Pattern, count: Tensor) -> Formed | None:
        """The same in one fused operation, which exists for the modules of the paper; None for others."""
        attention, fitness, inner = self.attention, self.fitness, self.inner
        # exactly these classes: a replaced module, or one with hooks, must be called
        if not isinstance(attention, Master2Token) or attention.master != "max" or type(fitness) is not LEConv:
            return None
        if type(attention) not in (Master2Token, DynamicAttention):
            return None
        if self.aggregate != "both" or not (inner is None or (type(inner) is GCN and not inner.relu)):
            return None
        if not all(map(is_plain, (attention.W, getattr(attention, "U", None), getattr(inner, "lin", None)))):
            return None
        if any(map(has_hooks, (attention, fitness, inner))):
            return None
        fused = kernels.fused_layers(self.backend, x, graph.weight, attention.w)
        if fused is None:
            return None
        dynamic = isinstance(attention, DynamicAttention)
        inside = attention.sigma == "inside" and not dynamic
        slopes = (attention.negative_slope, 1.0) if inside else (1.0, attention.negative_slope)
        rules = (self.rules.weighted_fitness, self.rules.fitness_loops, self.assign == "clusters")
        spec = fused.PoolSpec(clusters.rows, graph.pattern.rows, graph.pattern.ptr, count, *slopes, *rules)
        n, W, b = None, None, None
        if inner is not None:
            n, W, b = kernels.gcn_weights(graph, inner.loops, backend=self.backend), inner.lin.weight, inner.bias
        v, c, w = None, None, torch.as_tensor(attention.w)
        matrices: tuple[Tensor | None, ...] = (None, None, None)
        if isinstance(attention, DynamicAttention):
            matrices = (attention.W.weight, attention.W.bias, attention.U.weight)
        else:
            w = attention.w[attention.channels :]
            if not inside:
                v, c = (t.to(x.dtype) for t in attention.folded())  # under autocast they are bfloat16
                c = c + attention.c
        mask = attention.mask(clusters.col.numel(), x)
        formed: Formed = fused.form(spec, x, n, graph.weight, W, b, w, v, c, *fitness.stacked(), mask, *matrices)
        return formed

    def _inner(self, x: Tensor, graph: Graph) -> Tensor:
        if self.inner is None:
            return x
        out: Tensor
        if isinstance(self.inner, GCN):
            out = self.inner(x, graph)
        else:
            edge_index = torch.stack([graph.pattern.col, graph.pattern.row])
            y = self.inner(x=x, edge_index=edge_index, edge_weight=graph.hat(self.rules.loops))
            out = check_result(y, x, self.inner)
        return out

    def _phi(self, x: Tensor, graph: Graph, clusters: Pattern, alpha: Tensor, mask: Tensor | None) -> Tensor:
        def spread(u: Tensor) -> Tensor:
            return kernels.propagate(clusters, alpha, u, backend=self.backend) if self.aggregate == "both" else u

        fitness, options = self.fitness, {"weighted": self.rules.weighted_fitness or mask is not None}
        if mask is not None and not self.rules.weighted_fitness and isinstance(fitness, (LEConv, BasicLEConv, GCN)):
            graph = unweighted(graph, mask, loops=not isinstance(fitness, GCN))
        if isinstance(fitness, (LEConv, BasicLEConv)):
            options["loops"] = self.rules.fitness_loops
        if not isinstance(fitness, (LEConv, BasicLEConv, GCN)):  # a module of the user, called as a convolution
            edge_index, weight = kernels.list_edges(graph, backend=self.backend)
            score = fitness(x=spread(x), edge_index=edge_index, edge_weight=weight)
        elif type(fitness) not in (LEConv, BasicLEConv, GCN) or has_hooks(fitness):
            score = fitness(spread(x), graph, **options)
        else:  # x^c W = (S x) W = S (x W): propagate the few columns of x W instead of all of x
            score = fitness.compare(spread(fitness.project(x)), graph, **options)
        phi: Tensor = score.squeeze(-1).sigmoid()
        return phi

    def _members(self, graph: Graph, assignment: Assignment, phi: Tensor, perm: Tensor, ptr: Tensor) -> Assignment:
        """Memberships in the kept clusters that sum to 1 for every node."""
        members, source = kernels.join(assignment.clusters, graph.pattern, phi, perm, ptr, backend=self.backend)
        return Assignment(members, kernels.share(members, source, assignment.alpha, phi, backend=self.backend))

    def _edges(self, graph: Graph, assignment: Assignment, perm: Tensor, ptr: Tensor) -> Graph:
        edge_attr = graph.edge_attr
        if not self.soft_edges:
            induced = kernels.induce_graph(graph, perm, ptr, backend=self.backend)
            pattern, weight, edge_attr = induced.pattern, induced.weight, induced.edge_attr
        else:
            clusters, alpha = assignment
            S = alpha if self.rules.through_s else alpha.detach()
            hat = graph.hat(self.rules.loops)
            pattern, weight = kernels.coarsen(
                clusters, S, graph.pattern, hat, perm, ptr, self.max_neighbours, backend=self.backend
            )
            if edge_attr is not None:
                edges = (graph.pattern, graph.weight, edge_attr)
                edge_attr = kernels.coarsen_features(clusters, S, *edges, perm, pattern, backend=self.backend)
        if self.rules.diagonal == "one":
            weight = pattern.fill_diagonal(weight, 1.0)
        elif self.rules.diagonal == "drop" and not self.add_self_loops:
            weight = pattern.fill_diagonal(weight, 0.0)
        pooled = type(graph)(pattern, weight, edge_attr)
        if self.max_neighbours is not None:
            pooled = kernels.strongest(pooled, self.max_neighbours, backend=self.backend)
        return pooled

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        message = translate(state_dict, prefix, self.inner is not None)
        if message is not None:
            args[-1].append(message)  # torch's list of error messages
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        """One line as in torch_geometric, ASAPooling(16, ratio=0.5), with the options that differ from the defaults."""
        options = {"hops": (self.hops, 1), "dropout": (self.dropout, 0.0), "semantics": (self.semantics, "paper")}
        shown = "".join(f", {name}={value!r}" for name, (value, default) in options.items() if value != default)
        return f"{type(self).__name__}({self.in_channels}, ratio={self.ratio}{shown})"
