"""The service: FastAPI around one model; every response has a content security policy, every error one sentence."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asapool import __version__
from asapool.errors import AsapoolError
from asapool.serve.answers import Answers
from asapool.serve.batching import Batcher
from asapool.serve.requests import Refusal, parse, read_request, the_one
from asapool.serve.settings import ServeSettings

KNOWN = ("/predict", "/explain", "/embed", "/model", "/health", "/metrics", "/docs", "/")


class Meters:
    """Requests, their time, graphs and batches."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "asapool_requests", "Requests by path and status", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram("asapool_seconds", "Time of a request", ["path"], registry=self.registry)
        self.graphs = Counter("asapool_graphs", "Graphs predicted", registry=self.registry)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        self.batch = Histogram("asapool_batch_graphs", "Graphs of a batch", buckets=sizes, registry=self.registry)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request; unknown paths share one counter, so that requests cannot fill the memory with names."""
        name = path if path in KNOWN else "other"
        self.requests.labels(name, str(status)).inc()
        self.seconds.labels(name).observe(seconds)

    def text(self) -> bytes:
        """All counters."""
        return generate_latest(self.registry)


@cache
def _environment() -> Environment:
    loader = PackageLoader("asapool.serve")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def front_page(card: Mapping[str, Any], key: bool) -> str:
    """The page at /."""
    test = (card["scores"] or {}).get("test") or {}
    facts = [("method", card["method"]), ("trained on", card["trained_on"] or "unknown data")]
    for name, label in (("accuracy", "accuracy"), ("rmse", "RMSE"), ("roc_auc", "ROC AUC")):
        if isinstance(test.get(name), float):
            facts.append((f"test {label}", f"{test[name]:.3f}"))
    if card["conformal"] is not None:
        facts.append(("conformal coverage", f"{card['conformal']:.0%}"))
    return (
        _environment()
        .get_template("front.html")
        .render(
            card=card,
            key=key,
            facts=facts,
            molecules=card["inputs"]["kind"] == "SMILES",
            descriptors=card["inputs"]["descriptors"],
        )
    )


def docs_page(openapi: Mapping[str, Any]) -> str:
    """The page at /docs: every endpoint with its purpose, and the body of a request."""
    rows = [
        (verb.upper(), path, entry.get("summary", ""))
        for path, verbs in openapi["paths"].items()
        for verb, entry in verbs.items()
    ]
    body = openapi["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return _environment().get_template("docs.html").render(rows=rows, body=json.dumps(body, indent=2))


logger = logging.getLogger("asapool.serve")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
OPEN = ("/", "/health", "/page.css", "/page.js", "/docs", "/openapi.json")  # paths that need no key
EXAMPLE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "smiles": {"description": "one SMILES or a list", "example": ["CCO", "c1ccccc1"]},
                        "ids": {"type": "array", "items": {"type": "string"}},
                        "descriptors": {"type": "object", "description": "name → a number or null per SMILES"},
                        "graphs": {"type": "array", "items": {"type": "object"}, "description": "docs/data.md"},
                        "csv": {"type": "string"}, "column": {"type": "string"}, "jsonl": {"type": "string"},
                        "graphml": {"type": "string"}, "target": {"type": "string"}, "occlusion": {"type": "boolean"},
                        "index": {"type": "integer", "description": "which graph to explain; the first by default"},
                    },
                }
            }
        },
    }
}  # fmt: skip


def from_environment() -> FastAPI:
    """The application of a worker process."""
    return create_app(ServeSettings.published())


def create_app(settings: ServeSettings) -> FastAPI:
    """The application for a model."""
    import torch

    torch.set_num_threads(settings.threads)
    key, answers, meters = settings.api_key(), Answers(settings), Meters()
    answers.warm_up()
    batcher = Batcher(
        answers.predict, waiting=settings.max_waiting, seconds=settings.seconds, on_batch=meters.batch.observe
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    app = FastAPI(title="asapool", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)

    app.add_middleware(Guard, key=key, meters=meters)

    @app.exception_handler(Refusal)
    async def refuse(request: Request, error: Refusal) -> Response:
        return _refused(error.status, error.sentence)

    @app.exception_handler(AsapoolError)
    async def cannot(request: Request, error: AsapoolError) -> Response:
        return _refused(422, str(error)[:500])

    @app.exception_handler(HTTPException)
    async def no_such(request: Request, error: HTTPException) -> Response:
        known = {404: "there is no such path; see /docs", 405: "this path takes another method; see /docs"}
        return _refused(error.status_code, known.get(error.status_code, "the request cannot be answered"))

    async def job_of(request: Request) -> tuple[dict[str, Any], Any]:
        given = parse(await _body(request, settings.max_bytes))
        return given, read_request(given, answers.model, settings)

    @app.post("/predict", openapi_extra=EXAMPLE, summary="The prediction of every graph, in the order of the request")
    async def predict(request: Request) -> Response:
        _, job = await job_of(request)
        rows = await batcher.predict(job)
        meters.graphs.inc(len(rows))
        coverage = answers.answering.wanted.coverage
        return JSONResponse({"results": rows} if coverage is None else {"results": rows, "coverage": coverage})

    @app.post("/embed", openapi_extra=EXAMPLE, summary="The embedding of every graph, in the order of the request")
    async def embed(request: Request) -> Response:
        _, job = await job_of(request)
        return JSONResponse({"results": await batcher.run(answers.embed, job)})

    @app.post("/explain", openapi_extra=EXAMPLE, summary="Clusters and importance of one graph, with pictures")
    async def explain(request: Request) -> Response:
        given, job = await job_of(request)
        job = the_one(job, given.get("index", 0))
        occlusion = given.get("occlusion") is True
        return JSONResponse(await batcher.run(answers.explain, job, given.get("target"), occlusion))

    @app.get("/model", summary="Classes, feature recipe, validation and test scores, versions, limits")
    async def model() -> Response:
        return JSONResponse(answers.card())

    @app.get("/health", summary="Whether the service is up")
    async def health() -> Response:
        return JSONResponse({"status": "ok", "version": __version__, "waiting": batcher.queue.qsize()})

    @app.get("/metrics", summary="Prometheus counters of this worker")
    async def metrics() -> Response:
        return PlainTextResponse(meters.text(), media_type=meters.media_type)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(front_page(answers.card(), key is not None))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    @app.get("/page.css", include_in_schema=False)
    async def style() -> Response:
        return Response(_asset("page.css"), media_type="text/css")

    @app.get("/page.js", include_in_schema=False)
    async def script() -> Response:
        return Response(_asset("page.js"), media_type="text/javascript")

    return app


class Guard:
    """Middleware that checks the key, sets headers, counts requests, and logs and answers internal errors."""

    def __init__(self, app: ASGIApp, key: str | None, meters: Meters) -> None:
        self.app, self.key, self.meters = app, key, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            await send(message)

        refused = _unauthorised(Request(scope), self.key)
        try:
            await (self.app if refused is None else refused)(scope, receive, answer)
        except Exception:
            logger.exception("the request %r failed", scope["path"])
            if not status:
                await _refused(500, "the service failed on this request; its log says why")(scope, receive, answer)
        self.meters.count(scope["path"], status, time.perf_counter() - start)


def _asset(name: str) -> str:
    return files("asapool.serve").joinpath("templates", name).read_text(encoding="utf-8")


def _refused(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status)


def _unauthorised(request: Request, key: str | None) -> JSONResponse | None:
    """The response to a request without the required key, or None if it may pass."""
    if key is None or request.url.path in OPEN:
        return None
    given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
        return None
    return _refused(401, "this service needs a key: send it as `Authorization: Bearer KEY`")


async def _body(request: Request, most: int) -> bytes:
    """The body of a request, refused if it is larger than `most` bytes."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise Refusal(413, f"the request is larger than {most:,} bytes. Send several requests")
        chunks.append(chunk)
    return b"".join(chunks)
