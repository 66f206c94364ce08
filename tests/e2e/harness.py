"""Servers for the end-to-end tests: starts one on a free loopback port, reads its metrics, stops it by process id."""

import http.client
import json
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(__file__).resolve().parent / "data"
BINARY = os.environ.get("CAIRN_E2E_BINARY", str(ROOT / "build/release/bin/cairn"))
PLUGINS = os.environ.get("CAIRN_E2E_PLUGINS", str(ROOT / "build/release/plugins"))
MODEL = os.environ.get("CAIRN_E2E_MODEL", str(ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"))
NAME = "smol"
# Generous: the machine may be busy. No test waits for it when things work.
PATIENCE_S = 60


class Server:
    """A cairn server of this test run. With no arguments it serves the real model under the name NAME."""

    def __init__(self, *arguments, model=True):
        source = ["--model", MODEL, "--served-name", NAME, "--kv-cache-bytes", str(1 << 30)] if model else []
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", prefix="cairn-e2e-")
        self.process = subprocess.Popen(
            [BINARY, "serve", "--plugins", PLUGINS, "--port", "0", *source, *arguments],
            stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        try:
            self.port = int(self._ready_line().rsplit(":", 1)[1].split("/")[0])
        except BaseException:
            self.process.kill()
            raise
        self.url = f"http://127.0.0.1:{self.port}"
        self._metrics = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def _ready_line(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_S):
                raise AssertionError("the server did not become ready:\n" + self.log_text())
        line = self.process.stdout.readline()
        assert line.startswith("Ready: "), line + self.log_text()
        return line

    def log_text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def stop(self):
        """Ends the server with SIGTERM and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        """The exit code of a server that has been told to end."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body bytes) over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, path, body):
        """The JSON answer of a request that must succeed."""
        status, _, data = self.request("POST", path, json.dumps(body))
        assert status == 200, data
        return json.loads(data)

    def complete(self, **body):
        return self.post("/v1/completions", {"model": NAME, **body})

    def metrics_text(self):
        try:
            self._metrics.request("GET", "/metrics")
            response = self._metrics.getresponse()
        except ConnectionError:  # it was idle for longer than the server keeps connections
            self._metrics.close()
            self._metrics.request("GET", "/metrics")
            response = self._metrics.getresponse()
        return response.read().decode()

    def metrics(self):
        """Values by metric name, labels dropped (one model is served); histogram parts are left out."""
        values = {}
        for line in self.metrics_text().splitlines():
            if line and not line.startswith("#") and "_bucket{" not in line:
                name, value = line.rsplit(" ", 1)
                values[name.split("{")[0]] = values.get(name.split("{")[0], 0) + float(value)
        return values

    def counts(self):
        """What must be as at the start once every request has ended."""
        values = self.metrics()
        return {
            name: values[name]
            for name in (
                "vllm:num_requests_running",
                "vllm:num_requests_waiting",
                "cairn_open_requests",
                "cairn_kv_pages_used",
                "cairn_live_tensors",
            )
        }

    def wait_for(self, **wanted):
        """Polls /metrics until running, waiting, open, ... have these values; returns the time when they had."""
        names = {"running": "vllm:num_requests_running", "waiting": "vllm:num_requests_waiting", "open": "cairn_open_requests"}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            values = self.metrics()
            if all(values[names[key]] == value for key, value in wanted.items()):
                return time.monotonic()
            assert time.monotonic() < deadline, (wanted, values)

    def open_raw(self, body, path="/v1/completions"):
        """A socket on which a POST has been sent and nothing was read."""
        data = json.dumps({"model": NAME, **body}).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
        )
        return connection
