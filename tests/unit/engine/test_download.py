"""Test downloads from a faulty server: a file is complete and right under its name, or missing."""

from __future__ import annotations

import hashlib
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
import tenacity

from imagegen.engine.host import download
from imagegen.engine.host.download import Download, fetch
from imagegen.engine.host.probe import Probe, probe, without_secrets
from imagegen.errors import BuildError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DATA = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(DATA).hexdigest()
PAGE = b"\n<!DOCTYPE html><title>404</title>"
HALF = len(DATA) // 2


class Handler(BaseHTTPRequestHandler):
    """Answer as the test's script for the path says, and keep the requests."""

    def do_HEAD(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append((self.command, self.path, self.headers.get("Range", "")))
        server.scripts[self.path](self, len(server.asked))

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def say(self, status: int, body: bytes = b"", promised: int | None = None, **more: str) -> None:
        """Answer; `promised` is a Content-Length that differs from the length of the body."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def ranged(self, data: bytes, upto: int | None = None) -> None:
        """Answer a Range as a good server does, but stop after `upto` bytes of the file."""
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        if start >= len(data):
            self.say(416, Content_Range=f"bytes */{len(data)}")
            return
        length = len(data) - start
        shown = {"Content_Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        body = data[start:upto]
        self.say(206 if start else 200, body, length, **(shown if start else {}))


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts: dict[str, Callable[[Handler, int], None]] = {}
        self.asked: list[tuple[str, str, str]] = []


@dataclass
class Web:
    """Hold the server, and the folder of the downloads."""

    server: Server
    cache: Path
    said: list[str] = field(default_factory=list)

    def wanted(
        self, script: Callable[[Handler, int], None], sha256: str = SHA256, size: int = 0
    ) -> Download:
        path = f"/f{len(self.server.scripts)}.whl"
        self.server.scripts[path] = script
        return Download(self.url(path), sha256, size)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def fetch(self, wanted: Download) -> Path:
        return fetch(wanted, self.cache, on_line=self.said.append)

    @property
    def asked_from(self) -> list[str]:
        return [start for _, _, start in self.server.asked]

    def holds_nothing(self) -> bool:
        return not (self.cache / SHA256).exists()


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(download, "_WAIT", tenacity.wait_none())
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Web(server, tmp_path / "cache")
        server.shutdown()
        thread.join()


def test_a_file_is_kept_and_not_asked_for_again(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.ranged(DATA), size=len(DATA))
    assert web.fetch(wanted).read_bytes() == DATA
    assert web.fetch(wanted).name == SHA256
    assert len(web.server.asked) == 1
    assert web.said == [f"downloading {wanted}"]
    assert sorted(path.name for path in web.cache.iterdir()) == [SHA256, f"{SHA256}.lock"]


def test_a_kept_file_that_the_disk_has_spoiled_is_brought_in_again(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.ranged(DATA))
    web.fetch(wanted).write_bytes(b"spoiled")
    assert web.fetch(wanted).read_bytes() == DATA


def test_a_server_that_is_down_for_a_moment_is_asked_again(web: Web) -> None:
    wanted = web.wanted(lambda h, n: h.say(503) if n < 3 else h.ranged(DATA))
    assert web.fetch(wanted).read_bytes() == DATA
    assert len(web.server.asked) == 3
    assert web.said[1:] == [f"{wanted}: answers with HTTP 503 Service Unavailable; once more"] * 2


def test_a_server_that_stays_down_is_given_up(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.say(503))
    with pytest.raises(BuildError, match="answers with HTTP 503"):
        web.fetch(wanted)
    assert len(web.server.asked) == download.ATTEMPTS
    assert web.holds_nothing()


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_what_is_not_there_is_not_asked_for_twice(web: Web, status: int) -> None:
    wanted = web.wanted(lambda h, _: h.say(status, PAGE))
    with pytest.raises(BuildError, match=f"answers with HTTP {status}"):
        web.fetch(wanted)
    assert len(web.server.asked) == 1
    assert web.holds_nothing()


def test_a_transfer_that_breaks_off_goes_on_where_it_was(web: Web) -> None:
    wanted = web.wanted(lambda h, n: h.ranged(DATA, HALF if n == 1 else None))
    assert web.fetch(wanted).read_bytes() == DATA
    assert web.asked_from == ["", f"bytes={HALF}-"]


def test_a_transfer_may_break_off_as_often_as_it_brings_something(web: Web) -> None:
    piece = len(DATA) // 20
    wanted = web.wanted(lambda h, n: h.ranged(DATA, piece * n if n < 20 else None))
    assert web.fetch(wanted).read_bytes() == DATA
    assert len(web.server.asked) == 20 > download.ATTEMPTS


def test_the_next_run_goes_on_where_the_last_one_was(web: Web) -> None:
    wanted = web.wanted(lambda h, n: h.ranged(DATA, HALF) if n == 1 else h.say(404))
    with pytest.raises(BuildError):
        web.fetch(wanted)
    assert web.holds_nothing()
    assert (web.cache / f"{SHA256}.part").stat().st_size == HALF
    web.server.scripts["/f0.whl"] = lambda h, _: h.ranged(DATA)
    assert web.fetch(wanted).read_bytes() == DATA
    assert web.asked_from[-1] == f"bytes={HALF}-"


def test_without_ranges_it_starts_again(web: Web) -> None:
    wanted = web.wanted(
        lambda h, n: h.say(200, DATA[:HALF], len(DATA)) if n == 1 else h.say(200, DATA)
    )
    assert web.fetch(wanted).read_bytes() == DATA


def test_a_server_that_never_gives_the_whole_file_is_given_up(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.say(200, DATA[:HALF], len(DATA)))
    with pytest.raises(BuildError, match=f"ended after {HALF} bytes"):
        web.fetch(wanted)
    assert len(web.server.asked) == download.ATTEMPTS
    assert web.holds_nothing()


@pytest.mark.parametrize("left", [DATA, b"x" * HALF, b"x" * (len(DATA) + 1)])
def test_whatever_an_earlier_run_left_the_file_is_right(web: Web, left: bytes) -> None:
    wanted = web.wanted(lambda h, _: h.ranged(DATA))
    web.cache.mkdir()
    (web.cache / f"{SHA256}.part").write_bytes(left)
    assert web.fetch(wanted).read_bytes() == DATA


def test_a_range_that_was_not_asked_for_is_not_put_together(web: Web) -> None:
    def script(handler: Handler, number: int) -> None:
        if number == 2:
            handler.say(206, DATA[:9], Content_Range=f"bytes 0-8/{len(DATA)}")
        else:
            handler.ranged(DATA, HALF if number == 1 else None)

    assert web.fetch(web.wanted(script)).read_bytes() == DATA


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/xml", "Text/HTML"])
def test_a_page_is_never_taken_for_a_file(web: Web, kind: str) -> None:
    wanted = web.wanted(lambda h, _: h.say(200, PAGE, Content_Type=kind))
    with pytest.raises(BuildError, match="answers with a page"):
        web.fetch(wanted)
    assert web.holds_nothing()


def test_a_page_under_another_name_is_told_for_what_it_is(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.say(200, PAGE, Content_Type="application/octet-stream"))
    with pytest.raises(ConfigError) as caught:
        web.fetch(wanted)
    assert "HTML" in str(caught.value)
    assert sorted(path.name for path in web.cache.iterdir()) == [f"{SHA256}.lock"]


def test_another_file_than_the_wanted_one_is_not_kept(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.say(200, b"other"), size=len(DATA))
    with pytest.raises(ConfigError) as caught:
        web.fetch(wanted)
    evidence = caught.value.problems[0].evidence
    assert evidence == (
        f"sha256 is {hashlib.sha256(b'other').hexdigest()}, wanted {SHA256}",
        f"it has 5 bytes, wanted {len(DATA)}",
    )
    assert sorted(path.name for path in web.cache.iterdir()) == [f"{SHA256}.lock"]


def test_a_file_that_the_server_calls_compressed_text_stays_as_it_is(web: Web) -> None:
    wanted = web.wanted(lambda h, _: h.say(200, DATA, Content_Encoding="gzip"))
    assert web.fetch(wanted).read_bytes() == DATA


def test_redirects_are_followed(web: Web) -> None:
    there = web.wanted(lambda h, _: h.ranged(DATA))
    here = web.wanted(lambda h, _: h.say(302, Location=there.url))
    assert web.fetch(here).read_bytes() == DATA


def test_nobody_listening_is_told_in_words(web: Web) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_port
    wanted = Download(f"http://127.0.0.1:{port}/x.whl", SHA256, upstream="https://up.example/x.whl")
    with pytest.raises(BuildError) as caught:
        web.fetch(wanted)
    (problem,) = caught.value.problems
    assert problem.evidence == ("Connection refused",)
    assert "`https://up.example/x.whl` (mirror `http://127.0.0.1:" in problem.text


def test_files_of_this_machine_are_checked_the_same_way(web: Web, tmp_path: Path) -> None:
    source = tmp_path / "a file.whl"
    source.write_bytes(DATA)
    assert web.fetch(Download(source.as_uri(), SHA256)).read_bytes() == DATA
    source.write_bytes(b"other")
    with pytest.raises(ConfigError):
        web.fetch(Download(source.as_uri(), hashlib.sha256(b"else").hexdigest()))
    with pytest.raises(BuildError, match="there is no file"):
        web.fetch(Download((tmp_path / "none").as_uri(), hashlib.sha256(b"x").hexdigest()))


def test_a_folder_that_cannot_be_written_is_told(web: Web, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(BuildError, match="cannot be kept in"):
        web.fetch(web.wanted(lambda h, _: h.ranged(DATA)))


def _fetch_elsewhere(wanted: Download, cache: Path) -> None:
    sys.exit(0 if fetch(wanted, cache).read_bytes() == DATA else 1)


def test_of_two_processes_one_downloads_and_the_other_finds_it(web: Web) -> None:
    may_end = threading.Event()

    def script(handler: Handler, _: int) -> None:
        may_end.wait(10)
        handler.ranged(DATA)

    wanted = web.wanted(script)
    spawn = get_context("spawn")
    others = [spawn.Process(target=_fetch_elsewhere, args=(wanted, web.cache)) for _ in range(2)]
    for other in others:
        other.start()
    threading.Timer(1.0, may_end.set).start()
    assert web.fetch(wanted).read_bytes() == DATA
    for other in others:
        other.join()
    assert [other.exitcode for other in others] == [0, 0]
    assert len(web.server.asked) == 1


def test_what_is_shown_of_an_address_holds_no_secret() -> None:
    url = "https://me:token@host.example:8443/a/b.tgz?sig=secret"
    assert without_secrets(url) == "https://host.example:8443/a/b.tgz?…"
    assert "secret" not in str(Download(url, SHA256)) + str(Download("file:///x", SHA256, 0, url))


def test_a_probe_asks_without_fetching(web: Web) -> None:
    assert probe(web.wanted(lambda h, _: h.ranged(DATA)).url) == Probe("ok", f"{len(DATA)} bytes")
    assert web.server.asked[-1][0] == "HEAD"


@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_a_probe_asks_for_one_byte_where_head_is_refused(web: Web, status: int) -> None:
    def script(handler: Handler, _: int) -> None:
        if handler.command == "HEAD":
            handler.say(status)
        else:
            handler.say(206, DATA[:1], Content_Range=f"bytes 0-0/{len(DATA)}")

    assert probe(web.wanted(script).url) == Probe("ok", f"{len(DATA)} bytes")
    assert web.server.asked[-1][::2] == ("GET", "bytes=0-0")


@pytest.mark.parametrize(
    ("status", "kind", "state"),
    [
        (200, "text/html", "missing"),
        (404, "text/plain", "missing"),
        (403, "text/plain", "missing"),
        (503, "text/plain", "unknown"),
        (429, "text/plain", "unknown"),
    ],
)
def test_a_probe_tells_missing_from_unknown(web: Web, status: int, kind: str, state: str) -> None:
    wanted = web.wanted(lambda h, _: h.say(status, PAGE, Content_Type=kind))
    assert probe(wanted.url).state == state


def test_a_probe_of_nobody_is_unknown_and_of_a_file_is_known(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_port
    assert probe(f"http://127.0.0.1:{port}/x") == Probe("unknown", "Connection refused")
    assert probe((tmp_path / "x").as_uri()).state == "missing"
    (tmp_path / "x").touch()
    assert probe((tmp_path / "x").as_uri()).state == "ok"
