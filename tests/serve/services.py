"""A service of a test's own."""

import socket
import threading
import time
from contextlib import contextmanager

import httpx


@contextmanager
def serving(settings):
    """A service on a port of its own; the client's base_url is its address."""
    import uvicorn

    from asapool.serve.app import create_app

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(create_app(settings), host="127.0.0.1", port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as made:
        yield made
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()
