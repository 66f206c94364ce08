"""Requests that nobody should send: each gets the right 4xx with OpenAI's error object, and the server lives on.

The echo plugin serves, so that nothing but the front end works. What the parameters' checks say in detail is pinned in
tests/unit/host; here the whole way through socket, parser, pool and runtime is what counts.
"""

import json
import socket

import pytest

pytestmark = pytest.mark.light

NAME = "ai.cairn.echo"
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
BASE = {CHAT: {"model": NAME, "messages": [{"role": "user", "content": "hi"}]}, TEXT: {"model": NAME, "prompt": "hi"}}
DEEP = 100_000


def field(path, name, value):
    return path, json.dumps({**BASE[path], name: value}, ensure_ascii=True)


def raw_field(path, text):
    return path, json.dumps(BASE[path])[:-1] + ", " + text + "}"


def message(value):
    return CHAT, json.dumps({"model": NAME, "messages": value})


WRONG_TYPES = [
    field(path, name, value)
    for path in (CHAT, TEXT)
    for name, value in [
        ("temperature", "hot"), ("temperature", [1]), ("top_p", {}), ("top_k", 1.5), ("min_p", "x"), ("seed", 1.25), ("n", "3"), ("n", True),
        ("max_tokens", 1.5), ("max_tokens", []), ("stop", 1), ("stop", [1]), ("stop", {"a": 1}), ("stream", "true"), ("stream", 1),
        ("stream_options", []), ("logit_bias", []), ("logit_bias", {"1": "x"}), ("stop_token_ids", "1"), ("ignore_eos", "no"),
        ("presence_penalty", False), ("model", 5), ("model", ["a"]), ("response_format", "json"), ("user", {}),
    ]
]  # fmt: skip
OUT_OF_RANGE = [
    field(path, name, value)
    for path in (CHAT, TEXT)
    for name, value in [
        ("temperature", -0.001), ("temperature", 1e300), ("top_p", 0), ("top_p", -1), ("top_p", 1.0001), ("min_p", 2), ("top_k", -2),
        ("top_k", 2**31), ("repetition_penalty", 0), ("repetition_penalty", -1), ("presence_penalty", 2.01), ("frequency_penalty", -2.01),
        ("seed", 2**64), ("seed", -(2**63) - 1), ("n", 0), ("n", -1), ("n", 10**9), ("max_tokens", -1), ("max_tokens", 2**31), ("max_tokens", 10**30),
        ("min_tokens", -1), ("stop", ""), ("stop", ["x"] * 17), ("stop", "y" * 2000), ("logit_bias", {"256": 1}), ("logit_bias", {"-1": 1}),
        ("logit_bias", {"1": 101}), ("logit_bias", {"one": 1}), ("logit_bias", {str(i): 0 for i in range(5000)}), ("stop_token_ids", [256]),
        ("stop_token_ids", [0] * 300), ("max_tokens", 2**20),
    ]
]  # fmt: skip
NOT_A_NUMBER = [
    raw_field(path, f'"{name}": {value}')
    for path in (CHAT, TEXT)
    for name, value in [("temperature", "NaN"), ("top_p", "Infinity"), ("temperature", "-Infinity"), ("temperature", "1e999"), ("seed", "0x10"), ("n", "1_0")]
]
PROMPTS = [
    (TEXT, json.dumps({"model": NAME, "prompt": value}))
    for value in ["", [], [[]], [""], None, 5, {}, True, [1.5], [-1], [256], [2**31], [2**63], ["a", 1], [[1, []]], [None], "x" * (2**20)]
] + [(TEXT, json.dumps({"model": NAME, "prompt": ["a"] * 3000})), (TEXT, json.dumps({"model": NAME, "prompt": ["a"] * 100, "n": 128}))]
MESSAGES = [
    message(value)
    for value in [
        None, [], {}, "hi", 5, [5], ["hi"], [[]], [{}], [{"role": "user"}], [{"content": "x"}], [{"role": 5, "content": "x"}],
        [{"role": "user", "content": 5}], [{"role": "user", "content": [5]}], [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}],
        [{"role": "user", "content": [{"type": "text"}]}], [{"role": "user", "content": [{"text": "x"}]}], [{"role": "user", "content": {}}],
    ]
]  # fmt: skip
BODIES = [
    (path, body)
    for path in (CHAT, TEXT)
    for body in [
        b"", b" ", b"null", b"[]", b"5", b'"text"', b"{", b"}", b'{"model"}', b'{"model":}', b"{'model': 'x'}", b'{"model": "x",}', b"{} {}", b"\x00", b"\xff\xfe",
        b'{"model": "\xff\xff", "prompt": "x", "messages": []}', b'{"model": "\xed\xa0\x80"}', b'{"a": "\\ud800"}', b'{"a": "\\u12"}', b'{"a": "\n"}',
        b"[" * DEEP, b'{"a":' * DEEP, b'{"model": ' + b"[" * 70 + b"]" * 70 + b"}", b"9" * 100_000, b'"' + b"a" * 1_000_000, b"{}",
        b'{"model": ""}', b'{"model": null}', b"--boundary\r\nContent-Disposition: form-data", b"model=x&prompt=y",
    ]
]  # fmt: skip
BAD_REQUESTS = WRONG_TYPES + OUT_OF_RANGE + NOT_A_NUMBER + PROMPTS + MESSAGES + BODIES
OTHER_ROUTES = [
    ("POST", "/tokenize", b"{}", 400), ("POST", "/tokenize", b'{"prompt": 5}', 400), ("POST", "/tokenize", b"[]", 400),
    ("POST", "/detokenize", b'{"tokens": [256]}', 400), ("POST", "/detokenize", b'{"tokens": "a"}', 400), ("POST", "/detokenize", b'{"tokens": [1e400]}', 400),
    ("POST", "/detokenize", b'{"tokens": [-1]}', 400), ("POST", "/apply-template", b"{}", 400), ("POST", "/apply-template", b'{"messages": 1}', 400),
    ("GET", "/nothing", None, 404), ("GET", "/v1/models/" + "x" * 2000, None, 404), ("GET", "/v1/models/%00%ff%zz", None, 404), ("GET", "/../../etc/passwd", None, 404),
    ("GET", "/v1/completions", None, 405), ("DELETE", "/v1/models", None, 405), ("PUT", "/health", b"x", 405), ("POST", "/metrics", b"x", 405),
    ("POST", TEXT, json.dumps({"model": "other", "prompt": "x"}).encode(), 404), ("POST", CHAT, json.dumps({"model": "x" * 100_000, "messages": [{"role": "user", "content": "x"}]}).encode(), 404),
]  # fmt: skip
# Bytes on the wire, and the status they get (None: closed without an answer is right too).
WIRE = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200, 400),
    "bad method line": (b"GET\r\n\r\n", 400),
    "bad version": (b"GET /health HTTP/9.9\r\n\r\n", 400),
    "bad header": (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
    "header with NUL": (b"GET /health HTTP/1.1\r\nA: b\x00c\r\n\r\n", 400),
    "huge header": (b"GET /health HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n", 431),
    "many headers": (b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", 431),
    "huge target": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 431),
    "negative length": (b"POST /tokenize HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    "length beyond all": (b"POST /tokenize HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
    "two lengths": (b"POST /tokenize HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "length and chunks": (b"POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "bad chunk size": (b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
    "announced 64 MiB": (b"POST /tokenize HTTP/1.1\r\nContent-Length: 67108864\r\n\r\n", 413),
}


def assert_error(status, body, expected):
    assert status == expected, (status, body[:300])
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error" and isinstance(error["code"], str)
    assert 10 < len(error["message"]) < 2000 and error["message"][-1] in ".?"
    assert "\n" not in error["message"]


@pytest.fixture
def lives(echo_server):
    """The server, which must answer as ever after the test, in the same process."""
    yield echo_server
    assert echo_server.process.poll() is None
    assert echo_server.post(TEXT, {**BASE[TEXT], "max_tokens": 10})["choices"][0]["text"] == "hi"



@pytest.mark.parametrize("path, body", BAD_REQUESTS, ids=[f"{i}" for i in range(len(BAD_REQUESTS))])
def test_bad_request(lives, path, body):
    status, headers, answer = lives.request("POST", path, body)
    assert_error(status, answer, 400)
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("method, path, body, expected", OTHER_ROUTES, ids=range(len(OTHER_ROUTES)))
def test_other_routes(lives, method, path, body, expected):
    status, _, answer = lives.request(method, path, body)
    assert_error(status, answer, expected)


@pytest.mark.parametrize("sent, expected", WIRE.values(), ids=WIRE.keys())
def test_wire(lives, sent, expected):
    with socket.create_connection(("127.0.0.1", lives.port), timeout=30) as connection:
        connection.sendall(sent)
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
            part = connection.recv(65536)
            assert part, answer
            answer += part
    head, body = answer.split(b"\r\n\r\n", 1)
    assert_error(int(head.split()[1]), body, expected)


def test_64_mib_body(lives):
    """Refused by its announcement; a client that sends it all the same still reads the answer."""
    status, _, answer = lives.request("POST", TEXT, b'{"model": "' + b"x" * (64 << 20) + b'"}')
    assert_error(status, answer, 413)


def test_large_body_below_the_limit(lives):
    body = json.dumps({**BASE[TEXT], "prompt": list(range(256)) * 7000})
    assert 8_000_000 < len(body) < 8 << 20
    status, _, answer = lives.request("POST", TEXT, body)
    assert_error(status, answer, 400)
    assert json.loads(answer)["error"]["code"] == "context_length_exceeded"


def test_a_body_that_never_comes_holds_nobody_up(lives):
    with socket.create_connection(("127.0.0.1", lives.port), timeout=30) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        assert lives.post(TEXT, BASE[TEXT])["choices"][0]["text"] == "hi"


def test_pipelined_after_an_error(lives):
    """A refused request does not spoil the connection's next one."""
    bad, good = b'{"model": 1}', json.dumps(BASE[TEXT]).encode()
    with socket.create_connection(("127.0.0.1", lives.port), timeout=30) as connection:
        for body in (bad, good):
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = b""
        while answer.count(b"HTTP/1.1") < 2 or not answer.endswith(b"}"):
            part = connection.recv(65536)
            assert part, answer
            answer += part
    first, second = answer.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"400") and second.startswith(b"200") and b'"text":"hi"' in second
