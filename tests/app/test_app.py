"""`gortho app` over HTTP: who is answered, what is taken, searches, downloads, and that nothing stays behind."""

import io
import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_samples import BAD, bad_files, law
from click.testing import CliRunner

import gortho
from gortho import cli

pytest.importorskip("starlette")

from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from gortho.app import guard, jobs, server, store, tasks
from gortho.app.asked import FIELDS, Asked, as_fields
from gortho.app.serve import listen, serve
from gortho.samples.errors import OTHERS

ADDRESS, TOKEN = "http://127.0.0.1:8765", "secret"
QUICK = {"x": ["t", "s"], "y": ["y"], "effort": "quick"}


@pytest.fixture
def visitor():
    """A client that has not shown the token."""
    with TestClient(server.make_app(TOKEN), ADDRESS) as client:
        yield client


@pytest.fixture
def client(visitor):
    assert visitor.get(f"/?token={TOKEN}").status_code == 200
    return visitor


def upload(client, name, content):
    answer = client.put("/files", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()["file"]


def ended(client, run, until=lambda state: state["ended"]):
    while not until(state := client.get(f"/runs/{run}").json()):
        assert not state["ended"], state
        time.sleep(0.05)
    return state


def folder_of(client):
    return client.app.state.store.folder


# Who is answered


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "192.168.0.7", "127.0.0.1.evil.example"]
)
def test_foreign_hosts_are_refused(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 400
    assert client.put("/files?name=a.csv", content=b"a", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8765"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_pages_are_refused(client, headers):
    for method, path in (("GET", "/"), ("PUT", "/files?name=a.csv"), ("POST", "/example"), ("POST", "/runs")):
        assert client.request(method, path, headers=headers).status_code == 403
    assert client.app.state.store.files == {}
    own = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/example", headers=own).status_code == 201
    assert client.get("/", headers={"Host": "localhost:9000"}).status_code == 200  # through a tunnel


def test_nothing_is_answered_without_the_token(visitor):
    paths = [route.path for route in visitor.app.routes if isinstance(route, Route)]
    assert len(paths) > 8 and any(isinstance(route, Mount) for route in visitor.app.routes)
    for path in [*paths, "/static/app.js", "/?token=wrong", "/?token=", "/nowhere"]:
        for method in ("GET", "PUT", "POST", "OPTIONS"):
            assert visitor.request(method, path).status_code == 403, (method, path)
    assert visitor.put(f"/files?name=a.csv&token={TOKEN}", content=b"a").status_code == 403
    answer = visitor.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert visitor.get("/").status_code == 200


def test_the_page_has_all_that_it_needs(client):
    page = client.get("/")
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff" and page.headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in page.headers)
    assert not re.search(r"(src|href)=\"(?!/static/|data:)", page.text)
    assert "up to 500 MB" in page.text and store.MAX_UPLOAD == 500_000_000
    assert "up to 500 MB" in cli.main.commands["app"].help
    for file in (Path(server.__file__).parent / "static").iterdir():
        answer = client.get(f"/static/{file.name}")
        assert answer.status_code == 200 and "http" not in answer.text
    for name in ("../server.py", "%2e%2e/server.py", "..%2fserver.py"):
        assert client.get(f"/static/{name}").status_code == 404
    options = set(re.findall(r'name="(\w+)"', page.text)) - {"viewport"}
    assert options <= {*FIELDS} and {*FIELDS} - options == {
        "x",
        "y",
        "scalars",
        "drop",
    }  # by columns, or never


# Files


def test_files_above_the_limit_are_refused(client, monkeypatch):
    monkeypatch.setattr(store, "MAX_UPLOAD", 1_000_000)
    blocks = (bytes(300_000) for _ in range(5))  # its length is not told beforehand
    for content in (bytes(1_000_001), blocks):
        answer = client.put("/files", params={"name": "a.csv"}, content=content)
        assert answer.status_code == 413
        assert answer.json()["error"].startswith("a.csv is larger than 1 MB, the most that this page takes")
    assert list(folder_of(client).iterdir()) == []
    upload(client, "a.csv", bytes(1_000_000))


def test_a_full_disk_is_told(client, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server, "run_in_threadpool", full)
    answer = client.put("/files", params={"name": "a.csv"}, content=b"a")
    assert (
        answer.status_code == 507 and "a.csv cannot be stored here (No space left" in answer.json()["error"]
    )
    monkeypatch.undo()
    assert list(folder_of(client).iterdir()) == []


def test_names_of_files_lead_nowhere(client):
    for name in ("../../../evil.csv", "/etc/evil.csv", "..\\evil.csv"):
        upload(client, name, b"a,y\n1,2\n")
    files = [path for path in folder_of(client).rglob("*") if path.is_file()]
    assert len(files) == 3 and {path.name for path in files} == {"evil.csv"}
    assert not (folder_of(client).parent / "evil.csv").exists()
    assert client.get("/files/..%2f..").status_code == 404 and client.get("/files/nothing").status_code == 404


def test_the_oldest_files_go(client, monkeypatch):
    monkeypatch.setattr(store, "KEPT", 2)
    first, *_ = [upload(client, f"{k}.csv", b"a,y\n1,2\n") for k in range(3)]
    assert len(list(folder_of(client).iterdir())) == 2
    assert client.get(f"/files/{first}").json() == {"error": "The file is no longer here: drop it again."}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    return folder, bad_files(folder)


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told_as_on_the_command_line(bad, name):
    folder, words = bad
    with pytest.raises(ValueError, match=re.escape(words[name])) as told:
        tasks.look(print, file=str(folder / name), decimal=".")
    assert as_fields(str(told.value)).startswith(name) and not (folder / "loaded").exists()
    if name != "names.csv":  # the search says that samples are too few
        result = CliRunner().invoke(cli.main, ["discover", str(folder / name), "--x", "a", "--y", "y"])
        assert result.exit_code == 2 and words[name] in result.stderr


def test_bad_files_over_http(client, tmp_path):
    words = bad_files(tmp_path)
    for name in ("ragged.csv", "objects.npy"):
        file = upload(client, name, (tmp_path / name).read_bytes())
        answer = client.get(f"/files/{file}")
        assert answer.status_code == 422 and words[name] in answer.json()["error"]
    assert "Traceback" not in answer.text and str(folder_of(client)) not in answer.text
    assert not (tmp_path / "loaded").exists()


def test_pickled_arrays_are_shown_and_never_loaded(client, tmp_path):
    bad_files(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.write(tmp_path / "objects.npy", "X.npy")
        archive.write(tmp_path / "objects.npy", "y.npy")
    file = upload(client, "a.npz", (tmp_path / "a.npz").read_bytes())
    columns = client.get(f"/files/{file}").json()["columns"]
    assert {c["kind"] for c in columns} == {"objects"} and "can run code" in columns[0]["note"]
    with pytest.raises(ValueError, match="holds pickled Python objects, which are not loaded"):
        options = {"x": ["X"], "y": ["y"]}
        tasks.discover(print, file=str(tmp_path / "a.npz"), folder=str(tmp_path), asked=options)
    assert not (tmp_path / "loaded").exists()


# What is asked


@pytest.mark.parametrize(
    "content, message",
    [
        ({"y": ["y"]}, "no column is chosen for x"),
        ({"x": ["t"]}, "no column is chosen for y"),
        ({"x": ["t"], "y": ["y"], "file_name": "a"}, "names 'file_name', which is not an option"),
        ({"x": "t", "y": ["y"]}, "x: 't' is not a list of names"),
        ({"x": ["t", 3], "y": ["y"]}, "is not a list of names"),
        ({"x": ["t"], "y": ["y"], "seed": "abc"}, "Seed: 'abc' is not a whole number"),
        ({"x": ["t"], "y": ["y"], "seed": 1.5}, "Seed: 1.5 is not a whole number"),
        ({"x": ["t"], "y": ["y"], "seed": float("inf")}, "Seed: inf is not a whole number"),
        ({"x": ["t"], "y": ["y"], "tolerance": float("nan")}, "Tolerance: nan is not a number"),
        ({"x": ["t"], "y": ["y"], "tolerance": True}, "Tolerance: True is not a number"),
        ({"x": ["t"], "y": ["y"], "decimal": "x"}, "Decimal separator: 'x' is not a point or a comma"),
        ({"x": ["t"], "y": ["y"], "output": "scalar + foo"}, "How y changes: 'foo' is unknown; choose from"),
        ({"x": ["t"], "y": ["y"], "output": "scalar + class"}, "a class cannot be one of several outputs"),
        ({"x": ["t"], "y": ["y"], "dropna": "yes"}, "'yes' is not yes or no"),
        ({"x": ["t"], "y": ["y"], "effort": "huge"}, "Effort: 'huge' is not one of normal, quick"),
        ([], "not a JSON object"),
    ],
)
def test_what_is_asked_is_checked(content, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Asked.of(content)


@pytest.mark.parametrize("output", ["scalar + 2*vector", "pseudovector", "Tensor(3, 0) + form", "class"])
def test_outputs_that_a_search_knows(output):
    assert Asked.of({"x": ["t"], "y": ["y"], "output": output}).output == output
    if output != "class":
        gortho.reps.as_rep(output)


def test_requests_that_make_no_sense(client):
    file = upload(client, "a.csv", b"a,y\n1,2\n")
    for content, status in ((b"no json", 400), (b"[1]", 400), (b" " * 1_000_001, 413), (b"{}", 404)):
        assert client.post("/runs", content=content).status_code == status
    assert client.post("/runs", json={"file": file}).status_code == 422
    endless = f'{{"file": "{file}", "x": ["a"], "y": ["y"], "seed": 1e400}}'
    assert client.post("/runs", content=endless).status_code == 422
    assert client.get(f"/files/{file}?decimal=x").status_code == 422
    assert client.get("/runs").json() == {"run": None}
    for path in ("/runs/nothing", "/runs/nothing/run.zip"):
        assert client.get(path).status_code == 404
    assert client.delete("/files").status_code == 405


def test_the_command_asks_for_the_same(tmp_path):
    asked = Asked.of(
        {
            "x": ["a 1", "b"],
            "y": ["y"],
            "scalars": ["m"],
            "points": 2,
            "set_like": True,
            "dropna": True,
            "output": "scalar + vector",
            "look_for": ["SO", "origin"],
            "tolerance": 0.01,
            "time_budget": None,
            "names": "",
        }
    )
    words = shlex.split(asked.command("my file.csv"))
    assert words[:3] == ["gortho", "discover", "my file.csv"]
    given = cli.main.commands["discover"].make_context("discover", words[2:]).params
    assert (given["x"], given["y"], given["scalars"], given["points"]) == ("a 1,b", "y", "m", 2)
    assert given["set_like"] and given["dropna"] and not given["scalars_per_point"]
    assert (given["output"], given["look_for"], given["tolerance"]) == ("scalar + vector", "SO,origin", 0.01)
    assert Asked.of({"x": ["a,b"], "y": ["y"]}).command("a.csv") == ""


@pytest.mark.parametrize(
    "more, message",
    [
        ({"x": ["t", "colour"]}, "a.csv: line 2, column 'colour': .* the column by “off”"),
        ({"output": "vector", "y": ["y"]}, "“How y changes: vector” for 200 samples in 2 dimensions has"),
        ({"y": ["event"], "output": "class"}, "choose “How y changes: scalar” if it is a number"),
        ({"points": 3}, "cannot be split evenly among “Vectors in each row: 3”"),
        ({"weight": ["event"], "y_error": ["event"]}, "“Weight of each row” and “Error of y” are both given"),
    ],
)
def test_errors_of_searches_are_in_the_words_of_the_page(tmp_path, more, message):
    law().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError) as told:
        tasks.discover(
            lambda *_: None, file=str(tmp_path / "a.csv"), folder=str(tmp_path), asked=QUICK | more
        )
    assert re.search(message, as_fields(str(told.value))), as_fields(str(told.value))


# Searches


def test_from_file_to_predictions(client, tmp_path):
    frame = law()
    file = upload(client, "law.csv", frame.to_csv(index=False))
    run = client.post("/runs", json={"file": file, **QUICK}).json()["run"]
    second = client.post("/runs", json={"file": file, **QUICK})
    assert second.status_code == 409 and "A search of law.csv is running" in second.json()["error"]
    assert second.json()["run"] == client.get("/runs").json()["run"] == run
    assert client.get(f"/runs/{run}/run.zip").status_code == 404  # not yet

    state = ended(client, run)
    assert state["error"] == "" and state["seconds"] > 0
    result = state["result"]
    assert (result["verdict"], result["group"], result["samples"]) == ("FOUND", "O(1,1)", 200)
    assert result["command"] == "gortho discover law.csv --x t,s --y y --effort quick"
    assert result["headline"] in client.get(f"/runs/{run}/report.html").text
    assert result["formula"]["text"].startswith("y = ") and result["beside"] == []
    assert result["written"] == [result["formula"]["text"], "y = 1.00 t² - 2.00 s²"]
    assert result["said"][0].startswith("± 95 %: ") and result["advice"].endswith("on new data.")

    report = client.get(f"/runs/{run}/report.html")
    assert "script-src" not in guard.REPORT_POLICY
    assert report.headers["content-security-policy"] == guard.REPORT_POLICY
    kept = client.get(f"/runs/{run}/report.html?download=1")
    assert kept.headers["content-disposition"] == 'attachment; filename="gortho-report.html"'

    zipfile.ZipFile(io.BytesIO(client.get(f"/runs/{run}/run.zip").content)).extractall(tmp_path / "run")
    found = gortho.Discovery.load(tmp_path / "run")
    assert found.group_name == "O(1,1)" and found.provenance.source.file == "law.csv"

    made = client.post(f"/runs/{run}/predictions", json={"file": file}).json()
    assert (made["rows"], made["notes"]) == (200, [])
    table = pd.read_csv(io.BytesIO(client.get(f"/runs/{run}/{made['file']}").content))
    np.testing.assert_allclose(table["y"], found.predict(frame), rtol=1e-12)
    np.testing.assert_allclose(table["y"], frame["y"], atol=1e-6)

    gaps = frame.assign(t=frame["t"].where(frame.index > 4)).to_csv(index=False, sep=";", decimal=",")
    other = upload(client, "gaps.csv", gaps)
    made = client.post(f"/runs/{run}/predictions", json={"file": other, "dropna": True}).json()
    assert made["rows"] == 195 and made["notes"][0] == "the file was read with decimal commas"
    assert "5 of 200 rows" in made["notes"][1] and "left out" in made["notes"][1]

    (tmp_path / "other.csv").write_text("t,z\n1,2\n")
    with pytest.raises(ValueError, match=r"other\.csv: there is no column 's'.* choose a file that has them"):
        files = {"run": str(tmp_path / "run"), "file": str(tmp_path / "other.csv"), "out": "never.csv"}
        tasks.predict(print, **files, decimal=".")
    for name in (
        *("run", "..%2frun.zip", "predictions-..%2f..%2fx", "discovery.json"),
        "predictions-" + "a" * 300 + ".csv",
    ):
        assert client.get(f"/runs/{run}/{name}").status_code == 404


def test_a_stopped_search_hands_over_the_best_so_far(tmp_path):
    np.savez(tmp_path / "a.npz", X=law()[["t", "s"]], y=law()["y"])
    seen = []

    def watch(stage, share, line):
        seen.append(stage)
        if line.startswith("q("):
            raise KeyboardInterrupt

    options = {"x": ["X"], "y": ["y"], "effort": "quick"}
    result = tasks.discover(watch, file=str(tmp_path / "a.npz"), folder=str(tmp_path), asked=options)
    assert result["verdict"] == "UNDERDETERMINED" and "interrupted" in result["reason"] and result["law"]
    assert "time budget" in result["advice"] and "--" not in result["advice"]  # no options on the page
    assert seen[0] == "reading" and seen[-1] == tasks.WRITING and (tmp_path / "run.zip").is_file()


def test_a_run_that_cannot_be_saved_is_answered(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gortho.Discovery, "save", full)
    law().to_csv(tmp_path / "a.csv", index=False)
    result = tasks.discover(lambda *_: None, file=str(tmp_path / "a.csv"), folder=str(tmp_path), asked=QUICK)
    assert result["verdict"] == "FOUND" and not result["predicts"]
    assert "could not be saved" in result["notices"][-1] and "No space left" in result["notices"][-1]


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["terminal", "background"])
def started(request):
    """A server that was started in a terminal, and one in the background, whose children ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


def test_stopping_early_and_twice(started, client):
    file = upload(client, "law.csv", law().to_csv(index=False))
    run = client.post("/runs", json={"file": file, **QUICK}).json()["run"]
    assert client.post(f"/runs/{run}/stop").json()["stopping"]
    state = ended(client, run)  # before there is anything, or with the best so far
    assert state["error"] == tasks.STOPPED or "interrupted" in state["result"]["reason"]
    run = client.post("/runs", json={"file": file, **QUICK}).json()["run"]  # the next one may begin
    client.post(f"/runs/{run}/stop")
    state = client.post(f"/runs/{run}/stop").json()
    assert state["ended"] and "Stopped" in state["error"] and state["result"] is None


def test_the_session_goes_with_the_server():
    with TestClient(server.make_app(TOKEN), ADDRESS) as client:
        client.get(f"/?token={TOKEN}")
        file = upload(client, "law.csv", law().to_csv(index=False))
        run = client.post("/runs", json={"file": file, **QUICK}).json()["run"]
        folder, job = folder_of(client), client.app.state.store.runs[run].job
        assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0  # of this user alone
    assert not folder.exists() and job.state.ended and job._process.poll() is not None


def test_a_worker_that_dies_is_told():
    job = jobs.Job("look", file="nothing.csv", decimal=".")
    os.kill(job._process.pid, signal.SIGKILL)
    state = job.wait(60)
    assert state.ended and "ended from outside (exit code -9)" in state.error


def test_a_worker_ends_where_the_server_has_ended():
    job = jobs.Job("discover", file="nothing.csv", folder=".", asked={})
    job._process.stdin.close()
    assert job._process.wait(60) in (0, 1)


def test_what_nobody_expected_is_told_without_a_traceback(capfd):
    error = jobs.Job("nothing").wait(60).error
    assert error == "unexpected error (KeyError: 'nothing'); the terminal has more"
    assert "Traceback" in capfd.readouterr().err


def test_what_takes_too_long_is_given_up():
    state = jobs.Job("look", file="nothing.csv", decimal=".").wait(0.001)
    assert state.ended and "was stopped" in state.error


# The command


def test_only_this_machine_can_connect():
    with listen(0) as one:
        host, port = one.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(OSError, match=f"port {port} is taken: choose another by --port"):
            listen(port)


def test_the_command_serves_and_leaves_nothing(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "gortho", "app", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=\S{32}", process.stdout.readline())
        try:
            with socket.create_connection(("127.0.0.1", int(address[1])), 60) as connection:
                path = address[0].split(address[1])[1]
                connection.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
                )
                answer = connection.makefile().read()
            assert answer.startswith("HTTP/1.1 303") and "server:" not in answer.lower()
            assert len(list(tmp_path.glob("gortho-app-*"))) == 1
        finally:
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "") and "deleted" in out
    assert list(tmp_path.glob("gortho-app-*")) == []


def test_the_browser_opens_the_printed_address(monkeypatch):
    opened, told = queue.Queue(), []
    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    serve(None, True, told.append)
    assert [opened.get(timeout=60)] == told
    serve(None, False, told.append)
    assert len(told) == 2 and told[0] != told[1] and opened.empty()  # each has a token of its own


def test_a_port_that_is_taken():
    with listen(0) as one:
        result = CliRunner().invoke(cli.main, ["app", "--no-browser", "--port", str(one.getsockname()[1])])
    assert result.exit_code == 2 and "is taken" in result.stderr


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "gortho.app.serve", raising=False)
    result = CliRunner().invoke(cli.main, ["app", "--no-browser"])
    assert result.exit_code == 2 and "gortho app needs uvicorn: pip install 'gortho[app]'" in result.stderr


@pytest.mark.parametrize(
    "said, told",
    [
        (f"there is no column 'm'{OTHERS}", "there is no column 'm': choose a file that has them"),
        ("scalars = 'm': name the right columns by --scalars", "scalars = 'm': choose a file that has them"),
        (
            "one row for each sample: name them by --scalars",
            "one row for each sample: choose a file that has them",
        ),
        ("With these 9 samples (max_samples=9), about", "With these 9 samples (“Rows at most: 9”), about"),
        ("say by y_error or sample_weight", "say by “Error of y” or “Weight of each row”"),
        ("Leave it out of x (--drop NAME if x is found automatically);", "Leave it out of x;"),
        ("check it (gortho check).", "check it."),
    ],
)
def test_advice_and_errors_name_no_options(said, told):
    assert as_fields(said) == told
