"""The server's own life: draining on SIGTERM, health under load, metrics, and counts that return to where they were."""

import concurrent.futures
import json
import shutil
import signal
import subprocess
import time

import openai
import pytest

from harness import NAME, Server

STREAMS = 16
HEALTH_LIMIT_S = 0.050


def events(server, **body):
    """The parsed events of a streamed completion, [DONE] last, and nothing after it."""
    data = json.dumps({"model": NAME, "stream": True, "temperature": 0, "ignore_eos": True, **body})
    status, headers, content = server.request("POST", "/v1/completions", data)
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    *lines, end = content.decode().split("\n\n")
    assert end == "" and all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


def test_sigterm_lets_open_streams_end():
    server = Server("--drain-timeout", "60")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(events, server, prompt=f"{i}:", max_tokens=60) for i in range(4)]
        server.wait_for(running=4)
        server.process.send_signal(signal.SIGTERM)
        for answer in answers:
            *tokens, last, done = answer.result()
            assert done == "[DONE]"
            assert json.loads(last)["choices"][0]["finish_reason"] == "length"
            assert len(tokens) >= 1
    assert server.wait() == 0, server.log_text()


def test_sigterm_refuses_new_requests():
    server = Server("--drain-timeout", "60")
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    with client.completions.create(model=NAME, prompt="a", max_tokens=4000, stream=True, extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))
        server.process.send_signal(signal.SIGTERM)
        while server.request("GET", "/ready")[0] == 200:
            pass
        with pytest.raises(openai.InternalServerError) as caught:
            client.completions.create(model=NAME, prompt="b", max_tokens=1)
        assert caught.value.status_code == 503 and caught.value.code == "shutting_down"
        assert server.request("GET", "/health")[0] == 200
    assert server.wait() == 0, server.log_text()


def test_drain_deadline_ends_streams_properly():
    server = Server("--drain-timeout", "0.3")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(events, server, prompt=f"{i}:", max_tokens=8000) for i in range(3)]
        server.wait_for(running=3)
        server.process.send_signal(signal.SIGTERM)
        for answer in answers:
            *_, last = answer.result()
            assert json.loads(last)["error"]["code"] == "shutting_down"
    assert server.wait() == 0, server.log_text()


def test_health_answers_while_streams_run(server):
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        answers = [pool.submit(events, server, prompt=f"{i} apples", max_tokens=100) for i in range(STREAMS)]
        server.wait_for(running=STREAMS)
        times = []
        while len(times) < 50:
            start = time.monotonic()
            assert server.request("GET", "/health")[0] == 200
            times.append(time.monotonic() - start)
        assert server.metrics()["vllm:num_requests_running"] == STREAMS
        for answer in answers:
            assert len(answer.result()) > 2
    times.sort()
    print(f"/health beside {STREAMS} streams: median {1000 * times[25]:.1f} ms, worst {1000 * times[-1]:.1f} ms")
    assert times[25] < HEALTH_LIMIT_S


def test_second_signal_ends_at_once():
    server = Server("--drain-timeout", "600")
    with server.open_raw({"prompt": "a", "max_tokens": 8000, "ignore_eos": True, "stream": True}) as connection:
        connection.recv(64)
        server.process.send_signal(signal.SIGTERM)
        while server.request("GET", "/ready")[0] == 200:
            pass
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 1


def test_metrics_are_clean(server):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here; scripts/setup gets it")
    server.complete(prompt="a", max_tokens=3)
    text = server.metrics_text()
    result = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    # It reads all of it, and finds fault with nothing but the colon in the names that everybody's dashboards know.
    lines = (result.stdout + result.stderr).splitlines()
    assert [line for line in lines if not (line.startswith("vllm:") and line.endswith("should not contain ':'"))] == []
    assert len(lines) == text.count("# HELP vllm:")


def test_metrics_count(server):
    before = server.metrics()
    answer = server.complete(prompt=["a b c", "d"], max_tokens=5, ignore_eos=True)
    server.wait_for(open=0)
    after = server.metrics()
    for name, key in (("vllm:prompt_tokens_total", "prompt_tokens"), ("vllm:generation_tokens_total", "completion_tokens")):
        assert after[name] - before[name] == answer["usage"][key]
    for name in ("vllm:request_success_total", "vllm:time_to_first_token_seconds_count", "vllm:e2e_request_latency_seconds_count"):
        assert after[name] - before.get(name, 0) == 2
    assert after["vllm:inter_token_latency_seconds_count"] - before.get("vllm:inter_token_latency_seconds_count", 0) == 8


def test_counts_return_after_a_mix(server):
    """Answers, refusals and broken connections, many at a time; afterwards nothing is held."""
    before = server.counts()

    def one(i):
        if i % 3 == 0:
            connection = server.open_raw({"prompt": "abc " * (i * 10 + 1), "max_tokens": 500, "n": 1 + i % 2, "stream": i % 2 == 0, "ignore_eos": True})
            if i % 2 == 0:
                connection.recv(1 + i)
            connection.close()
        elif i % 3 == 1:
            server.request("POST", "/v1/completions", json.dumps({"model": NAME, "prompt": [i, -i]}))
        else:
            server.complete(prompt=f"{i}", max_tokens=i % 7 + 1, n=1 + i % 2)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(60)))
    server.wait_for(open=0, running=0, waiting=0)
    assert server.counts() == before
