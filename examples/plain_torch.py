"""ASAP in a loop of your own: the pooling layer, plain torch, and batches cut from a packed set.

Rings against paths, 200 graphs; the two look alike everywhere but at the ends of the path. A pooling of asapool.nn
takes and gives what the layers of torch_geometric do, so it fits into any model that uses those.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import ASAPooling, load
from asapool.data import Batch
from asapool.nn import Readout


class TwoLevels(nn.Module):
    """Pool twice, read out after each pooling, add the summaries, classify."""

    def __init__(self, in_channels: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.embed = nn.Linear(in_channels, hidden)
        self.pools = nn.ModuleList([ASAPooling(hidden, ratio=0.5), ASAPooling(hidden, ratio=0.5)])
        self.readout = Readout()
        self.head = nn.Linear(2 * hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """x (N, F), edge_index (2, E), batch (N,), as torch_geometric has them; returns logits (B, C)."""
        x, edge_weight, summary = self.embed(x).relu(), None, 0
        for pool in self.pools:
            x, edge_index, edge_weight, batch, _ = pool(x, edge_index, edge_weight, batch)
            summary = summary + self.readout(x, batch)
        return self.head(summary)


def main(epochs: int = 30) -> float:
    """Train on 160 graphs and return the accuracy on the other 40."""
    torch.manual_seed(0)
    graphs = load("synthetic:cycles?graphs=200")
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0)).numpy()
    train, test = order[:160], order[160:]
    model = TwoLevels(graphs.num_features, 32, graphs.num_classes)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)

    def logits_of(batch: Batch) -> Tensor:
        return model(batch.x, batch.edge_index, batch.batch)

    for epoch in range(epochs):
        loss = torch.zeros(())
        for start in range(0, len(train), 32):
            batch = graphs.batch(train[start : start + 32])  # slices of arrays: no loop over graphs, no DataLoader
            loss = nn.functional.cross_entropy(logits_of(batch), batch.y)
            adam.zero_grad()
            loss.backward()
            adam.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
    with torch.no_grad():
        batch = graphs.batch(test)
        accuracy = (logits_of(batch).argmax(1) == batch.y).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
