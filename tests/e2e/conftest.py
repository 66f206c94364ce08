"""The servers that several test files share, one each per run."""

import openai
import pytest

from harness import NAME, Server


def served(*arguments, **options):
    server = Server(*arguments, **options)
    before = server.counts()
    yield server
    assert server.wait_for(open=0, running=0, waiting=0)
    assert server.counts() == before
    assert server.stop() == 0, server.log_text()


@pytest.fixture(scope="session")
def server():
    """The real model, prompts in one piece. Every count must be back where it was when the run ends."""
    yield from served("--max-batch-tokens", "4096")


@pytest.fixture(scope="session")
def chunked_server():
    """The same with prompts cut into chunks of at most 16 tokens."""
    yield from served("--max-batch-tokens", "16")


@pytest.fixture(scope="session")
def echo_server():
    yield from served("--plugin", "ai.cairn.echo", model=False)


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="session")
def complete(client):
    """client.completions.create with the model filled in and greedy by default; extensions go through extra_body."""

    def call(prompt, **options):
        options.setdefault("temperature", 0)
        return client.completions.create(model=NAME, prompt=prompt, **options)

    return call
