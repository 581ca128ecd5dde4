"""`Prometheus`: the newest window for a Prometheus that scrapes this process.

Format: text 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Listens on the loopback interface
alone. The text is made when it is asked for.
"""

import contextlib
import math
import os
import re
import socket
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import ClassVar

from fastload.monitoring.record import Finding, Window
from fastload.monitoring.sinks.sink import Sink, figures, renamed

__all__ = ["Prometheus", "text"]

_ODD = re.compile(r"[^a-zA-Z0-9_:]")
_END_S = 1.0
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Prometheus(Sink):
    """Answers scrapes of `http://127.0.0.1:PORT/metrics` with the newest window.

    Args:
        port: Port to listen on; 0 for any that is free.

    Attributes:
        port: The port.

    Raises:
        OSError: The port is taken.
    """

    is_instant: ClassVar[bool] = True
    port: int

    def __init__(self, port: int) -> None:
        try:
            self._server = _Server(port)
        except OSError as error:
            msg = (
                f"cannot listen on 127.0.0.1:{port} for Prometheus ({error.strerror}); "
                f"choose another port, as in to='prometheus:{port + 1}'"
            )
            raise OSError(error.errno, msg) from error
        self.port = self._server.server_address[1]
        self.name = f"Prometheus at port {self.port}"
        self._thread = threading.Thread(
            target=self._server.serve, name="fastload monitor prometheus", daemon=True
        )
        self._thread.start()

    def write(self, window: Window, findings: Sequence[Finding]) -> None:
        """Keeps the window for the next scrape."""
        self._server.newest = window, findings

    def close(self, summary: str = "") -> None:  # noqa: ARG002 (scrapes get figures alone)
        """Stops to listen."""
        self._server.wake_to_end()
        if self._thread is not threading.current_thread():  # a collected monitor closes anywhere
            self._thread.join(_END_S)
        self._server.server_close()


class _Server(TCPServer):  # HTTPServer would ask a name server for its own name
    allow_reuse_address = True
    newest: tuple[Window, Sequence[Finding]] | None = None
    _is_ending = False

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        _servers.add(self)

    def serve(self) -> None:
        """Answers scrapes; `serve_forever` would wake up twice a second and more to see if it is to end."""
        while not self._is_ending:
            self.handle_request()

    def wake_to_end(self) -> None:
        """Has `serve` return, once a client that it listens to is done."""
        self._is_ending = True
        with contextlib.suppress(OSError):
            port = self.server_address[1]
            socket.create_connection(("127.0.0.1", port), timeout=_END_S).close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing about a scraper that hung up."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 1.0  # of a client that sends nothing, in seconds: others wait for it
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        newest = self.server.newest
        body = b"" if newest is None else text(*newest).encode()
        self.send_response(200)
        self.send_header("Content-Type", _CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs no scrape."""


def text(window: Window, findings: Sequence[Finding]) -> str:
    """Returns a window in Prometheus's text format, version 0.0.4.

    Each figure is a gauge `fastload_NAME` with the label `rank`. `fastload_finding_cost_s` has a sample for each kind
    and owner of a finding.
    """
    rank = str(window.rank)
    found = figures(window, findings)
    names = renamed(found, lambda name: _ODD.sub("_", f"fastload_{name}"))
    lines = list(_gauge("fastload_step", "step", [({"rank": rank}, window.step)]))
    for name, value in found.items():
        lines += _gauge(names[name], name, [({"rank": rank}, value)])
    costs: dict[tuple[str, str], float] = defaultdict(float)
    for finding in findings:
        costs[finding.kind, finding.owner] += finding.cost_s
    lines += _gauge(
        "fastload_finding_cost_s",
        "cost of a finding per step",
        [
            ({"rank": rank, "kind": kind, "owner": owner}, cost)
            for (kind, owner), cost in costs.items()
        ],
    )
    return "\n".join([*lines, ""])


def _gauge(
    name: str, help_text: str, samples: Sequence[tuple[Mapping[str, str], float]]
) -> Iterator[str]:
    if not samples:
        return
    yield f"# HELP {name} {_escaped(help_text)}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        inner = ",".join(
            '{}="{}"'.format(key, _escaped(label).replace('"', r"\""))
            for key, label in labels.items()
        )
        yield f"{name}{{{inner}}} {_number(value)}"


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))


_servers: "weakref.WeakSet[_Server]" = weakref.WeakSet()


def _close_in_child() -> None:
    """Closes the sockets that a forked child has inherited, so that it does not hold their ports."""
    for server in list(_servers):
        server.socket.close()


os.register_at_fork(after_in_child=_close_in_child)
