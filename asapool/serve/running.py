"""The worker processes of a service."""

from __future__ import annotations

from asapool.errors import ConfigError, MissingExtraError
from asapool.models import checkpoint
from asapool.serve.answers import wanted_of
from asapool.serve.neighbours import Neighbours
from asapool.serve.settings import ServeSettings


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
