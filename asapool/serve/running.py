"""The processes of a service."""

from __future__ import annotations

from asapool.errors import ConfigError, MissingExtraError
from asapool.serve.settings import ServeSettings


def run(settings: ServeSettings, host: str, port: int, workers: int, log_level: str = "info") -> None:
    """Serve until a signal comes: SIGTERM and Ctrl-C finish the requests that are under way, up to ten seconds.

    With several workers a parent process restarts one that dies.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(str(error.name), "serve") from None
    from asapool.models import checkpoint

    settings.api_key()  # mistakes are reported before a worker starts
    checkpoint.load(settings.model)
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port must lie in 0 to 65535, got {port}")
    settings.publish()
    uvicorn.run(
        "asapool.serve.app:from_environment", factory=True, host=host, port=port, workers=workers,
        log_level=log_level, timeout_graceful_shutdown=10, access_log=False, server_header=False,
    )  # fmt: skip
