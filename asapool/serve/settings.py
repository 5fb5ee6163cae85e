"""The settings of a service, and how they reach its worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from asapool.errors import ConfigError

VARIABLE = "ASAPOOL_SERVE"  # environment variable through which the settings reach the workers


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """The model, the key and the limits of a service; exceeding a limit returns a status code and one sentence.

    Args:
        model: a run folder or a model file.
        api_key_file: a file with the key that requests must send; None = no key.
        max_bytes: size of a request (413).
        max_graphs: graphs per request (413).
        max_nodes: nodes per graph (422, for this graph alone).
        max_waiting: requests in the queue (503).
        seconds: time for a request (503).
        coverage: of conformal sets and intervals; None = 0.9 if the model supports that.
        threads: of torch and of the compiled kernels, per worker.
        neighbours: a labelled set whose most similar graphs are shown beside an explanation; None = no set.
    """

    model: str
    api_key_file: str | None = None
    max_bytes: int = 8_000_000
    max_graphs: int = 2000
    max_nodes: int = 1000
    max_waiting: int = 512
    seconds: float = 30.0
    coverage: float | None = None
    threads: int = 1
    neighbours: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_graphs", "max_nodes", "max_waiting", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"serve: {name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.seconds <= 3600:
            raise ConfigError(f"serve: seconds must lie in (0, 3600], got {self.seconds}")

    def api_key(self) -> str | None:
        """The key, from its file."""
        if self.api_key_file is None:
            return None
        try:
            key = Path(self.api_key_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.api_key_file}: the key cannot be read ({error})") from None
        if len(key) < 16:
            raise ConfigError(f"{self.api_key_file}: a key of at least 16 characters expected, got {len(key)}")
        return key

    def publish(self) -> None:
        """Pass the settings to worker processes through the environment."""
        os.environ[VARIABLE] = json.dumps(asdict(self))

    @classmethod
    def published(cls) -> ServeSettings:
        """The settings that the parent process published."""
        return cls(**json.loads(os.environ[VARIABLE]))
