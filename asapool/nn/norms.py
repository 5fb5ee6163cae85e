"""Normalisation layers, all called as norm(x, ptr)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Padding
from asapool.kernels.dense import node_statistics
from asapool.kernels.shards import Shard, ShardedBatchNorm, current_shard
from asapool.nn.hooks import has_hooks

NORMS = ("batch", "graph", "layer", "none")


class NodeNorm(nn.BatchNorm1d):
    """Batch normalisation over all nodes of a batch; a single node has no variance, so it uses the running statistics.

    >>> NodeNorm(1)(torch.tensor([[1.], [3.]])).round().tolist()
    [[-1.0], [1.0]]
    """

    def forward(self, input: Tensor, ptr: Tensor | Padding | None = None) -> Tensor:
        """x (N, F), or (B, N, F) with the sizes `ptr` of a padded batch; returns the same shape.

        Statistics are computed in the dtype of the weights, as in nn.BatchNorm1d, even if autocast made x bfloat16.
        """
        if isinstance(ptr, Padding):
            return self._padded(input.to(self.weight.dtype), ptr).to(input.dtype)
        if torch.compiler.is_compiling():  # nn.BatchNorm1d needs the number of nodes, which is unknown here
            x = input.to(self.weight.dtype)
            count = x.new_ones(x.size(0)).sum()
            mean = x.sum(0) / count
            return self._normalised(x, mean, (x - mean).square().sum(0) / count, count).to(input.dtype)
        shard = current_shard()
        if self.training and shard is not None:
            return self._sharded(input, shard)
        if self.training and input.size(0) < 2:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(input)

    def activated(
        self, x: Tensor, ptr: Tensor | Padding | None = None, *, relu: bool = True, p: float = 0.0,
        residual: Tensor | None = None, backend: str = "auto",
    ) -> Tensor:  # fmt: skip
        """residual + dropout(ReLU(norm(x))), in one operation where the compiled loops apply.

        Args:
            x: (N, F), or (B, N, F) with the sizes `ptr` of a padded batch.
            ptr: as in `forward`.
            relu: apply ReLU.
            p: probability of dropout.
            residual: of the shape of x, or None.
            backend: see asapool.kernels.

        Returns:
            The shape of x.
        """
        fused = None
        if x.dtype == self.weight.dtype and not has_hooks(self):
            fused = kernels.fused_layers(backend, x, self.weight, residual)
        if fused is None or x.size(0) == 0:
            y: Tensor = self(x, ptr)
            y = y.relu() if relu else y
            y = kernels.dropout(y, p, backend=backend) if p else y
            return y if residual is None else residual + y
        assert self.running_mean is not None  # for the type checker: statistics are always tracked
        assert self.running_var is not None
        running = fused.RunningStatistics(
            self.running_mean, self.running_var, self.momentum or 0.0, not self.training, self.num_batches_tracked
        )
        extras = fused.Extras(relu, p, int(kernels.draw_seed()) if p else 0)
        y = fused.batch_norm(x, self.weight, self.bias, residual, self.eps, running, extras, current_shard())
        return y

    def _sharded(self, x: Tensor, shard: Shard) -> Tensor:
        """Batch normalisation over the nodes of all processes that share the batch."""
        y, mean, variance, count = ShardedBatchNorm.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.bias, self.eps, shard
        )
        assert self.running_mean is not None  # for the type checker: statistics are always tracked
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        n = int(count)
        if n < 2:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        share = self.momentum or 0.0
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * (n / (n - 1))).to(self.running_var.dtype), share)
        self.num_batches_tracked.add_(1)
        normalised: Tensor = y
        return normalised

    def _padded(self, x: Tensor, ptr: Padding) -> Tensor:
        """Batch normalisation over the real nodes of a padded batch."""
        return self._normalised(x, *node_statistics(x, ptr))

    def _normalised(self, x: Tensor, mean: Tensor, variance: Tensor, count: Tensor) -> Tensor:
        """Normalise with the statistics of `count` nodes, or with the running ones outside of training."""
        assert self.running_mean is not None  # for the type checker: statistics are always tracked
        assert self.running_var is not None
        if not self.training:
            mean, variance = self.running_mean, self.running_var
        else:
            several = count > 1  # a single node has no variance
            share = torch.where(several, self.momentum or 0.0, 0.0).to(mean.dtype)
            with torch.no_grad():
                self.running_mean.lerp_(mean, share)
                self.running_var.lerp_(variance * (count / (count - 1).clamp(min=1)), share)
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked.add_(several.to(torch.int64))
            mean, variance = (
                torch.where(several, mean, self.running_mean),
                torch.where(several, variance, self.running_var),
            )
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias


class LayerNorm(nn.LayerNorm):
    """Layer normalisation of every node: y_i = γ (x_i − mean_f x_if) / √(var_f x_if + ε) + β."""

    def forward(self, input: Tensor, ptr: Tensor | None = None) -> Tensor:
        """x (N, F); `ptr` is not used; returns (N, F)."""
        return super().forward(input)


class NoNorm(nn.Identity):
    """Returns x unchanged."""

    def forward(self, input: Tensor, ptr: Tensor | None = None) -> Tensor:
        """x (N, F); `ptr` is not used; returns x."""
        return input


def normalisation(name: str, channels: int, *, backend: str = "auto") -> nn.Module:
    """The normalisation of that name, called as norm(x, ptr) with the nodes of a packed batch.

    Args:
        name: "batch" (over all nodes of the batch), "graph" (over the nodes of each graph, with a learned fraction of
            the mean), "layer" (over the features of each node) or "none".
        channels: the width of x.
        backend: see asapool.kernels; used only by "graph".

    Returns:
        The module.

    >>> x, ptr = torch.tensor([[1.], [3.], [10.], [14.]]), torch.tensor([0, 2, 4])
    >>> normalisation("graph", 1)(x, ptr).round().view(-1).tolist()
    [-1.0, 1.0, -1.0, 1.0]
    """
    choose("norm", name, NORMS)
    if isinstance(channels, bool) or not isinstance(channels, int) or channels < 1:
        raise ConfigError(f"channels must be a whole number of at least 1, got {channels!r}")
    if name == "graph":
        return GraphNorm(channels, backend=backend)
    norm: nn.Module = {"batch": NodeNorm, "layer": LayerNorm, "none": NoNorm}[name](channels)
    return norm


class GraphNorm(nn.Module):
    """Normalise every graph separately, subtracting a learned fraction α of its mean (GraphNorm, ICML 2021).

    y_i = γ (x_i − α μ_b) / √(mean_{i∈b}(x_i − α μ_b)² + ε) + β, with μ_b = mean_{i∈b} x_i, feature by feature.

    torch_geometric's GraphNorm gives the same numbers, and its state dicts can be loaded.
    """

    def __init__(self, channels: int, eps: float = 1e-5, *, backend: str = "auto") -> None:
        super().__init__()
        self.channels, self.eps = channels, eps
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean_scale = nn.Parameter(torch.ones(channels))

    def reset_parameters(self) -> None:
        """γ = α = 1, β = 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        nn.init.ones_(self.mean_scale)

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """x (N, F) and ptr (B+1,) of a packed batch; returns (N, F)."""
        return kernels.graph_norm(x, ptr, self.weight, self.bias, self.mean_scale, self.eps, backend=self.backend)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.channels}, eps={self.eps}"
