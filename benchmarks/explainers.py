"""Published explainers as peers on our models: GNNExplainer, integrated gradients, PGExplainer and SubgraphX.

All return one number per node, from the same trained model. GNNExplainer is torch_geometric's and integrated gradients
are captum's. torch_geometric's PGExplainer puts its mask into layers of its own type, and there is no SubgraphX in it,
so these two are written here after their papers (Luo et al. 2020, Yuan et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool.data import GraphSet
from asapool.data.batch import Batch
from asapool.insight.copies import blanked
from asapool.models import GraphModel
from asapool.models.batches import cut
from asapool.models.encoders import ConvBlock
from asapool.models.plus import PlusBlock

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Adapter(nn.Module):
    """A model as explainers call it: node features of one graph in, logits out; the structure stays."""

    def __init__(self, model: GraphModel, graphs: GraphSet, index: int) -> None:
        super().__init__()
        self.model, self.batch = model, cut(model, graphs, np.array([index]))
        self.train(model.training)  # a new module is in training mode, and Explainer restores that in the model as well

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """Logits (1, C)."""
        return self.model(x, *self.batch.inputs[1:], **self.model.more(self.batch))


def gnn_explainer(model: GraphModel, graphs: GraphSet, index: int) -> Floats:
    """Importance (N,) by a learned mask over the nodes, 100 steps."""
    from torch_geometric.explain import Explainer, GNNExplainer

    torch.manual_seed(index)
    adapter = Adapter(model, graphs, index)
    explainer = Explainer(
        adapter, GNNExplainer(epochs=100), explanation_type="model", node_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
    )  # fmt: skip
    return explainer(adapter.batch.x, adapter.batch.edge_index).node_mask.view(-1).numpy()


def integrated_gradients(model: GraphModel, graphs: GraphSet, index: int, c: int) -> Floats | None:
    """Σ_f of captum's integrated gradients of the log odds of class c from zero features, (N,); None without captum."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        return None
    batch = cut(model, graphs, np.array([index]))

    def logit(x: Tensor) -> Tensor:  # (steps, N, F)
        z = logits_of_copies(model, batch, x)
        return z[:, c] - torch.cat([z[:, :c], z[:, c + 1 :]], dim=1).logsumexp(dim=1)

    result = IntegratedGradients(logit).attribute(batch.x[None], n_steps=50)
    return result[0].sum(dim=1).detach().numpy()


def logits_of_copies(model: GraphModel, batch: Batch, x: Tensor) -> Tensor:
    """Logits (R, C) of copies of one graph with the node features x (R, N, F)."""
    copies = blanked(batch, torch.zeros(len(x), dtype=torch.long))
    copies = replace(copies, x=x.reshape(-1, x.size(2)))
    return model(*copies.inputs, **model.more(copies))


class PGExplainer:
    """A network that predicts the mask of an edge from the embeddings of its two nodes, trained over many graphs.

    ω_ij = f(z_i ‖ z_j) + f(z_j ‖ z_i), m_ij = σ((ln u/(1 − u) + ω_ij) / τ) with u uniform and τ falling from 5 to 1;
    the loss is the cross entropy of the model's own prediction under the edge weights m, plus the paper's terms for
    the size (0.05 Σ m) and the entropy (1.0 × mean) of a mask. z are the outputs of the last convolution before the
    first pooling. A node's importance is the mean of ω over its edges: σ(ω) is often 0 or 1 to rounding.

    The subtree counts of asap+ do not depend on edge weights, so there the mask acts on its convolutions and its
    pooling only. The result depends on the seed, so `trained_pg_explainer` keeps the best of several by their own loss.
    """

    def __init__(self, model: GraphModel, graphs: GraphSet, *, seed: int, epochs: int = 20, most: int = 128) -> None:
        self.model = model
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randperm(len(graphs), generator=generator)[:most].numpy()
        with torch.no_grad():
            width = self.embeddings(cut(model, graphs, chosen[:1])).size(1)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 1))
        optimiser = torch.optim.Adam(self.network.parameters(), lr=0.003)
        self.last_loss = float("nan")  # mean over the batches of the last epoch
        for epoch in range(epochs):
            temperature = 5.0 * (1.0 / 5.0) ** (epoch / epochs)
            order = chosen[torch.randperm(len(chosen), generator=generator).numpy()]
            losses = []
            for first in range(0, len(order), 32):
                batch = cut(model, graphs, np.sort(order[first : first + 32]))
                loss = self.loss(batch, temperature, generator)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            self.last_loss = float(np.mean(losses))

    def embeddings(self, batch: Batch) -> Tensor:
        """z (N, F): the last output of a convolution block that has a row per node of the batch."""
        outputs: list[Tensor] = []
        N = batch.x.size(0)

        def keep(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if output.size(0) == N == inputs[0].size(0):
                outputs.append(output)

        blocks = [m for m in self.model.modules() if isinstance(m, ConvBlock | PlusBlock)]
        hooks = [block.register_forward_hook(keep) for block in blocks]
        try:
            with torch.no_grad():
                self.model(*batch.inputs, **self.model.more(batch))
        finally:
            for hook in hooks:
                hook.remove()
        return outputs[-1]

    def edge_logits(self, batch: Batch) -> Tensor:
        """ω (E,)."""
        z = self.embeddings(batch)
        j, i = batch.edge_index
        both: Tensor = self.network(torch.cat([z[i], z[j]], dim=1)) + self.network(torch.cat([z[j], z[i]], dim=1))
        return both.squeeze(1)

    def loss(self, batch: Batch, temperature: float, generator: torch.Generator) -> Tensor:
        """Mean loss of the graphs of a batch."""
        more = self.model.more(batch)
        with torch.no_grad():
            predicted = self.model(*batch.inputs, **more).argmax(dim=1)
        omega = self.edge_logits(batch)
        u = torch.rand(omega.size(), generator=generator).clamp(1e-6, 1 - 1e-6)
        mask = ((u.logit() + omega) / temperature).sigmoid()
        weight = mask if batch.weight is None else mask * batch.weight
        logits = self.model(*batch.inputs[:4], weight, **more)
        m = mask.clamp(1e-6, 1 - 1e-6)
        entropy = -(m * m.log() + (1 - m) * (1 - m).log()).mean()
        return nn.functional.cross_entropy(logits, predicted) + 0.05 * mask.sum() / len(batch) + entropy

    def __call__(self, graphs: GraphSet, index: int) -> Floats:
        """Importance (N,)."""
        batch = cut(self.model, graphs, np.array([index]))
        with torch.no_grad():
            omega = self.edge_logits(batch).double()
        _, i = batch.edge_index
        total = torch.zeros(batch.x.size(0), dtype=torch.double).index_add(0, i, omega)
        return (total / batch.rowptr.diff().clamp(min=1)).numpy()


def trained_pg_explainer(model: GraphModel, graphs: GraphSet, *, seed: int, attempts: int = 3) -> PGExplainer:
    """The one of several PGExplainers whose own loss is lowest in its last epoch."""
    made = [PGExplainer(model, graphs, seed=1000 * seed + k) for k in range(attempts)]
    return min(made, key=lambda one: one.last_loss)


@dataclass(eq=False)
class State:
    """A connected subgraph in the search tree."""

    nodes: Mask
    reward: float = 0.0  # its Shapley value
    visits: int = 0
    total: float = 0.0
    children: list[State] | None = field(default=None, repr=False)


class SubgraphX:
    """Monte Carlo tree search over connected subgraphs, each valued by a sampled Shapley value.

    An action prunes one node and keeps the largest component. A subgraph is one player, the nodes within `hops` of it
    are the others, nodes further away stay; absent nodes have zero features, as in the paper. The search descends by
    total/visits + explore · reward · √(Σ visits)/(1 + visits) and ends at subgraphs of at most `size` nodes.
    """

    def __init__(
        self, model: GraphModel, graphs: GraphSet, index: int, c: int, *, size: int, seed: int = 0, rollouts: int = 10,
        actions: int = 8, samples: int = 10, hops: int = 3, explore: float = 10.0,
    ) -> None:  # fmt: skip
        self.model, self.c, self.size, self.rollouts = model, c, size, rollouts
        self.actions, self.samples, self.explore = actions, samples, explore
        self.batch = cut(model, graphs, np.array([index]))
        self.rng = np.random.default_rng(seed)
        N = self.batch.x.size(0)
        j, i = self.batch.edge_index.numpy()
        self.adjacent = np.zeros((N, N), bool)
        self.adjacent[i, j] = self.adjacent[j, i] = True
        reach = np.eye(N, dtype=np.int64)
        for _ in range(hops):
            reach = ((reach @ (self.adjacent | np.eye(N, dtype=bool))) > 0).astype(np.int64)
        self.reach = reach.astype(bool)
        self.states: dict[bytes, State] = {}

    def __call__(self) -> Floats:
        """Importance (N,): the reward of the best subgraph of at most `size` nodes that contains the node."""
        N = self.batch.x.size(0)
        root = State(self.largest(np.ones(N, bool)))
        for _ in range(self.rollouts):
            path = [root]
            while path[-1].nodes.sum() > self.size:
                path.append(self.best_child(path[-1]))
            for state in path:
                state.visits += 1
                state.total += path[-1].reward
        small = [s for s in self.states.values() if s.nodes.sum() <= self.size] or [root]
        scores = np.full(N, min(s.reward for s in small) - 1)
        for state in small:
            scores[state.nodes] = np.maximum(scores[state.nodes], state.reward)
        return scores

    def best_child(self, state: State) -> State:
        """The child to descend into; the children are made and valued on the first visit."""
        if state.children is None:
            inside = np.flatnonzero(state.nodes)
            degree = self.adjacent[np.ix_(inside, inside)].sum(axis=1)
            found: dict[bytes, State] = {}
            for v in inside[np.argsort(degree, kind="stable")][: self.actions]:
                rest = state.nodes.copy()
                rest[v] = False
                rest = self.largest(rest)
                found[rest.tobytes()] = self.states.get(rest.tobytes(), State(rest))
            new = [s for key, s in found.items() if key not in self.states]
            for s, reward in zip(new, self.shapley([s.nodes for s in new]), strict=True):
                s.reward = reward
            self.states |= found
            state.children = list(found.values())
        visits = sum(s.visits for s in state.children)

        def bound(s: State) -> float:
            return s.total / max(s.visits, 1) + self.explore * s.reward * visits**0.5 / (1 + s.visits)

        return max(state.children, key=bound)

    def shapley(self, subgraphs: list[Mask]) -> list[float]:
        """Mean of p(coalition with the subgraph) − p(coalition alone) over random coalitions, per subgraph."""
        if not subgraphs:
            return []
        sets = []
        for nodes in subgraphs:
            near = self.reach[nodes].any(axis=0) & ~nodes
            # in a random order of the players, those before the subgraph are a uniformly sized random set
            share = self.rng.random((self.samples, 1))
            coalition = np.where(near, self.rng.random((self.samples, len(nodes))) < share, ~nodes)
            sets += [coalition | nodes, coalition]
        p = self.probability(np.concatenate(sets)).reshape(len(subgraphs), 2, self.samples)
        return (p[:, 0] - p[:, 1]).mean(axis=1).tolist()

    def probability(self, present: Mask) -> Floats:
        """p of the class with zero features outside each set (R, N), (R,)."""
        N = self.batch.x.size(0)
        step = max(1, 16_384 // N)
        parts = []
        with torch.no_grad():
            for first in range(0, len(present), step):
                mask = torch.from_numpy(present[first : first + step])
                logits = logits_of_copies(self.model, self.batch, self.batch.x * mask[:, :, None])
                parts.append(logits.softmax(dim=1)[:, self.c].double().numpy())
        return np.concatenate(parts)

    def largest(self, nodes: Mask) -> Mask:
        """The largest connected component of a set of nodes."""
        from scipy.sparse.csgraph import connected_components

        inside = np.flatnonzero(nodes)
        _, label = connected_components(self.adjacent[np.ix_(inside, inside)])
        kept = np.zeros_like(nodes)
        kept[inside[label == np.bincount(label).argmax()]] = True
        return kept
