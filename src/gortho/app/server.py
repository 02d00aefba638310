"""The server: the page, and what it asks for, as JSON."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from gortho import __version__
from gortho.app import example, store, tasks
from gortho.app.asked import FIELDS, LOOK_FOR, OUTPUTS, Asked, check_decimal
from gortho.app.guard import HOSTS, REPORT_POLICY, Guard
from gortho.app.jobs import Job
from gortho.app.store import Run, Store, TooLarge, safe_name
from gortho.cli.options import EFFORTS
from gortho.cli.searching import TOLERANCE
from gortho.report.templates import template
from gortho.samples.kinds import KINDS

HERE = Path(__file__).parent
#: Seconds that a look at a file, and predictions, may take.
LOOK_SECONDS, PREDICT_SECONDS = 120.0, 600.0
#: Bytes of a request other than a file, at most.
MAX_REQUEST = 1_000_000
#: Names of files with predictions, one for each file that was predicted for.
PREDICTIONS = re.compile(r"predictions-[0-9a-f]{16}\.csv")


def make_app(token: str) -> Starlette:
    """The application; its session begins and ends with it."""

    @asynccontextmanager
    async def session(app: Starlette) -> AsyncIterator[None]:
        app.state.store, app.state.looking = Store(), asyncio.Lock()
        try:
            yield
        finally:
            await run_in_threadpool(app.state.store.close)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/files", upload, methods=["PUT"]),
            Route("/example", make_example, methods=["POST"]),
            Route("/files/{file}", look),
            Route("/runs", running),
            Route("/runs", search, methods=["POST"]),
            Route("/runs/{run}", progress),
            Route("/runs/{run}/stop", stop, methods=["POST"]),
            Route("/runs/{run}/predictions", predict, methods=["POST"]),
            Route("/runs/{run}/{name}", download),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
            Middleware(Guard, token=token),
        ],
        exception_handlers={ValueError: _refused, HTTPException: _failed},
        lifespan=session,
    )


async def _refused(request: Request, error: Exception) -> Response:
    """What cannot be done, in a sentence."""
    return JSONResponse({"error": str(error)}, 413 if isinstance(error, TooLarge) else 422)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def page(request: Request) -> Response:
    """The page itself."""
    shown = template("page.html", HERE).render(
        version=__version__,
        fields=FIELDS,
        outputs=OUTPUTS,
        look_for=LOOK_FOR,
        efforts=list(EFFORTS),
        tolerance=TOLERANCE,
        max_upload=store.MAX_UPLOAD,
        suffixes=[*KINDS, ".csv.gz"],
    )
    return HTMLResponse(shown)


async def upload(request: Request) -> Response:
    """Store the body, a file, whose name is in the address."""
    name = safe_name(request.query_params.get("name", ""))
    if int(request.headers.get("content-length") or 0) > store.MAX_UPLOAD:
        raise TooLarge(name)
    path, size = _store(request).place(name), 0
    try:
        with path.open("wb") as file:
            async for block in request.stream():
                size += len(block)
                if size > store.MAX_UPLOAD:
                    raise TooLarge(name)
                await run_in_threadpool(file.write, block)
    except (ClientDisconnect, TooLarge, OSError) as error:
        shutil.rmtree(path.parent)
        if isinstance(error, OSError):
            raise HTTPException(507, f"{name} cannot be stored here ({error.strerror}): make room") from None
        if isinstance(error, ClientDisconnect):  # nobody is there to be told
            return Response(status_code=400)
        raise
    return _stored(request, path)


def _stored(request: Request, path: Path) -> Response:
    file = _store(request).add_file(path)
    return JSONResponse({"file": file, "name": path.name, "size": path.stat().st_size}, 201)


async def make_example(request: Request) -> Response:
    """Store a file of our own, for those who have none at hand."""
    path = _store(request).place(example.NAME)
    await run_in_threadpool(example.write, path)
    return _stored(request, path)


async def look(request: Request) -> Response:
    """The columns of a file."""
    path = _file(request, request.path_params["file"])
    decimal = check_decimal(request.query_params.get("decimal", "."))
    async with request.app.state.looking:  # one at a time: each takes memory
        return JSONResponse(await _done("look", LOOK_SECONDS, file=str(path), decimal=decimal))


async def search(request: Request) -> Response:
    """Begin a search; one at a time."""
    content = await _content(request)
    options = dict(content)
    path = _file(request, options.pop("file", ""))
    asked, session = Asked.of(options), _store(request)
    if (other := session.running) is not None:
        name = session.runs[other].of["name"]
        told = f"A search of {name} is running, perhaps in another tab: wait for it, or stop it."
        return JSONResponse({"error": told, "run": other}, 409)
    folder = session.place("run").parent
    job = Job("discover", file=str(path), folder=str(folder), asked=dataclasses.asdict(asked))
    return JSONResponse({"run": session.add_run(job, folder, {"name": path.name, "asked": content})}, 201)


async def running(request: Request) -> Response:
    """The run that goes on, in whichever tab it was begun; null if none does."""
    return JSONResponse({"run": _store(request).running})


async def progress(request: Request) -> Response:
    """How far a run is, its answer, and what it is the answer to."""
    run = _run(request)
    return JSONResponse(dataclasses.asdict(run.job.state) | {"seconds": run.job.seconds, "of": run.of})


async def stop(request: Request) -> Response:
    """Stop a run: the first time with the best so far, the second time at once."""
    await run_in_threadpool(_run(request).job.stop)
    return await progress(request)


async def predict(request: Request) -> Response:
    """Predictions of a run for a file: read as the run was if it is the same file, else as the file itself says."""
    run, content = _run(request), await _content(request)
    path, asked = _file(request, content.get("file", "")), run.of["asked"]
    out = run.folder / f"predictions-{path.parent.name}.csv"
    reading = {
        "decimal": asked.get("decimal") or "." if path.parent.name == asked["file"] else None,
        "dropna": bool(asked.get("dropna") or content.get("dropna")),
    }
    async with request.app.state.looking:
        arguments = {"run": str(run.folder / tasks.RUN), "file": str(path), "out": str(out)}
        done = await _done("predict", PREDICT_SECONDS, **arguments, **reading)
    return JSONResponse(done | {"file": out.name})


async def download(request: Request) -> Response:
    """A file of a run: to look at, the report, or to keep."""
    run, name = _run(request), request.path_params["name"]
    path = run.folder / name
    known = name in (tasks.ZIP, tasks.REPORT) or PREDICTIONS.fullmatch(name)
    if not known or not path.is_file():
        raise HTTPException(404, f"the run has no file {name}")
    if name == tasks.REPORT and "download" not in request.query_params:
        return FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})
    shown = "predictions.csv" if name.startswith("predictions-") else f"gortho-{name}"
    return FileResponse(path, filename=shown)


async def _done(task: str, seconds: float, **arguments: Any) -> dict[str, Any]:
    """The answer of a short task, or its error."""
    job = await run_in_threadpool(Job, task, **arguments)
    state = await run_in_threadpool(job.wait, seconds)
    if state.result is None:
        raise ValueError(state.error)
    return state.result


async def _content(request: Request) -> dict[str, Any]:
    body = b""
    async for block in request.stream():
        body += block
        if len(body) > MAX_REQUEST:
            raise HTTPException(413, "the request is too long")
    try:
        content = json.loads(body)
    except ValueError:
        raise HTTPException(400, "the request is not JSON") from None
    if not isinstance(content, dict):
        raise HTTPException(400, "the request is not a JSON object")
    return content


def _store(request: Request) -> Store:
    return request.app.state.store


def _file(request: Request, name: Any) -> Path:
    path = _store(request).files.get(str(name))
    if path is None:
        raise HTTPException(404, "The file is no longer here: drop it again.")
    return path


def _run(request: Request) -> Run:
    run = _store(request).runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, "The run is no longer here: search again.")
    return run
