"""Counters of a worker for Prometheus."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest

KNOWN = ("/predict", "/explain", "/embed", "/model", "/health", "/metrics", "/docs", "/")


class Meters:
    """Requests, their time, graphs and batches."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "asapool_requests", "Requests by address and status", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram("asapool_seconds", "Time of a request", ["path"], registry=self.registry)
        self.graphs = Counter("asapool_graphs", "Graphs predicted", registry=self.registry)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        self.batch = Histogram("asapool_batch_graphs", "Graphs of a batch", buckets=sizes, registry=self.registry)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Note a request; addresses that do not exist are one, so that nobody can fill the memory with names."""
        name = path if path in KNOWN else "other"
        self.requests.labels(name, str(status)).inc()
        self.seconds.labels(name).observe(seconds)

    def text(self) -> bytes:
        """All counters."""
        return generate_latest(self.registry)
