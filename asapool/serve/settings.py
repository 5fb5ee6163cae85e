"""The settings of a service, and its worker processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from asapool.errors import ConfigError, MissingExtraError

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


def run(settings: ServeSettings, host: str, port: int, workers: int, log_level: str = "info") -> None:
    """Serve until a signal arrives: SIGTERM and Ctrl-C let running requests finish, for up to ten seconds.

    With several workers, a parent process restarts any that die.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(str(error.name), "serve") from None
    from asapool.models import checkpoint
    from asapool.serve.answers import wanted_of
    from asapool.serve.neighbours import Neighbours

    settings.api_key()  # report errors before a worker starts
    model = checkpoint.load(settings.model)
    wanted_of(model, settings.coverage)
    if settings.neighbours is not None and workers > 1:  # a single worker is this process and checks it itself
        Neighbours(model, settings.neighbours)
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port must lie in 0 to 65535, got {port}")
    settings.publish()
    uvicorn.run(
        "asapool.serve.app:from_environment", factory=True, host=host, port=port, workers=workers,
        log_level=log_level, timeout_graceful_shutdown=10, access_log=False, server_header=False,
    )  # fmt: skip
