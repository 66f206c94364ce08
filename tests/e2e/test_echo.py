"""The smallest plugin over HTTP: no weights, and what comes out is what went in."""

import concurrent.futures
import json

import openai
import pytest

pytestmark = pytest.mark.light

NAME = "ai.cairn.echo"
TEXTS = ["a", "Hello, world!", "naïve café", "日本語のテキスト", "🦀🦀🦀", "tab\tand\nnewline", "x" * 5000]


@pytest.fixture(scope="module")
def echo(echo_server):
    return openai.OpenAI(base_url=echo_server.url + "/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_in_text_out(echo, text):
    whole = echo.completions.create(model=NAME, prompt=text, max_tokens=100000)
    assert whole.choices[0].text == text
    assert whole.usage.completion_tokens == whole.usage.prompt_tokens == len(text.encode())
    events = list(echo.completions.create(model=NAME, prompt=text, max_tokens=100000, stream=True))
    # No event carries a piece of a character.
    assert "".join(event.choices[0].text for event in events) == text
    assert not any("\ufffd" in event.choices[0].text for event in events)


def test_limit_cuts(echo):
    answer = echo.completions.create(model=NAME, prompt="abcdef", max_tokens=3)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("abc", "length")


def test_stop_string(echo):
    answer = echo.completions.create(model=NAME, prompt="one two three", max_tokens=100, stop=["o t", "three"])
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("one tw", "stop")


def test_many_together(echo_server):
    texts = [f"{i}: " + "né" * (i + 1) for i in range(64)]

    def answer(text):
        return echo_server.post("/v1/completions", {"model": NAME, "prompt": text, "max_tokens": 1000})["choices"][0]["text"]

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert list(pool.map(answer, texts)) == texts


def test_chat_echoes_the_last_message(echo):
    messages = [{"role": "system", "content": "ignored"}, {"role": "user", "content": "hello"}]
    assert echo.chat.completions.create(model=NAME, messages=messages).choices[0].message.content == "hello"


def test_tokenize_is_bytes(echo_server):
    assert echo_server.post("/tokenize", {"prompt": "né"})["tokens"] == list("né".encode())
    status, _, body = echo_server.request("POST", "/detokenize", json.dumps({"tokens": [256]}))
    assert status == 400 and json.loads(body)["error"]["param"] == "tokens"
