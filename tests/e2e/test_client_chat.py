"""Chat with the official client, unchanged."""

import openai
import pytest

from harness import NAME, Server

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


def chat(client, messages=FRANCE, **options):
    options.setdefault("temperature", 0)
    return client.chat.completions.create(model=NAME, messages=messages, **options)


def test_answer_is_sensible(client):
    answer = chat(client, max_tokens=32)
    assert answer.object == "chat.completion" and answer.model == NAME
    assert answer.choices[0].message.role == "assistant"
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"


def test_usage_counts_tokens(client, server):
    answer = chat(client, max_tokens=7)
    prompt = server.post("/tokenize", {"messages": FRANCE})["count"]
    assert answer.usage.prompt_tokens == prompt
    assert answer.usage.completion_tokens == 7
    assert answer.usage.total_tokens == prompt + 7
    assert answer.choices[0].finish_reason == "length"


def test_prompt_is_what_the_template_makes(client, server):
    prompt = server.post("/apply-template", {"messages": FRANCE})["prompt"]
    assert prompt.endswith("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n")
    whole = chat(client, max_tokens=16).choices[0].message.content
    assert server.complete(prompt=prompt, max_tokens=16, temperature=0)["choices"][0]["text"] == whole


@pytest.mark.parametrize("options", [{"max_tokens": 24}, {"max_tokens": 24, "temperature": 1.2, "seed": 11}, {"n": 3, "seed": 5, "temperature": 1}])
def test_stream_equals_whole(client, options):
    options = {"max_tokens": 20, "logprobs": True, "top_logprobs": 2, **options}
    whole = chat(client, **options)
    texts, tokens, reasons, usage = {}, {}, {}, None
    for event in chat(client, stream=True, stream_options={"include_usage": True}, **options):
        assert event.object == "chat.completion.chunk"
        if event.usage is not None:
            assert event.choices == [] and usage is None
            usage = event.usage
        for choice in event.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.logprobs:
                tokens.setdefault(choice.index, []).extend(choice.logprobs.content)
            if choice.finish_reason:
                reasons[choice.index] = choice.finish_reason
    for choice in whole.choices:
        assert texts[choice.index] == choice.message.content
        assert tokens[choice.index] == choice.logprobs.content
        assert reasons[choice.index] == choice.finish_reason
    assert len(texts) == len(whole.choices)
    assert usage.model_dump() == whole.usage.model_dump()


def test_stream_without_options_carries_no_usage(client):
    events = list(chat(client, stream=True, max_tokens=4))
    assert all(event.usage is None and len(event.choices) == 1 for event in events)
    assert events[0].choices[0].delta.role == "assistant"


def test_n_draws_differently_and_repeats(client):
    options = {"n": 3, "temperature": 1, "seed": 42, "max_tokens": 16}
    first, second = chat(client, **options), chat(client, **options)
    texts = [choice.message.content for choice in first.choices]
    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert texts == [choice.message.content for choice in second.choices]
    assert first.usage.completion_tokens == 48


def test_without_seed_two_answers_differ(client):
    texts = {chat(client, temperature=1.5, max_tokens=24).choices[0].message.content for _ in range(3)}
    assert len(texts) > 1


def test_logprobs_are_probabilities_of_the_tokens(client):
    answer = chat(client, max_tokens=12, logprobs=True, top_logprobs=5)
    content = answer.choices[0].logprobs.content
    assert b"".join(bytes(token.bytes) for token in content).decode() == answer.choices[0].message.content
    for token in content:
        assert len(token.top_logprobs) == 5
        values = [top.logprob for top in token.top_logprobs]
        assert values == sorted(values, reverse=True) and values[0] <= 0
        # Greedy: the token is its own best alternative.
        assert token.top_logprobs[0].logprob == token.logprob and token.top_logprobs[0].token == token.token


def test_stop_string_across_tokens(client):
    full = chat(client, max_tokens=16, logprobs=True)
    text = full.choices[0].message.content
    first, second = full.choices[0].logprobs.content[2:4]
    stop = first.token[-2:] + second.token[:2]
    assert len(stop) == 4 and stop in text
    answer = chat(client, max_tokens=16, stop=[stop, "never said"])
    assert answer.choices[0].message.content == text[: text.index(stop)]
    assert answer.choices[0].finish_reason == "stop"
    streamed = [event.choices[0] for event in chat(client, max_tokens=16, stop=stop, stream=True)]
    assert "".join(choice.delta.content or "" for choice in streamed) == text[: text.index(stop)]
    assert streamed[-1].finish_reason == "stop"


def test_max_completion_tokens_is_max_tokens(client):
    assert chat(client, max_completion_tokens=3).usage.completion_tokens == 3


def test_system_and_earlier_turns_reach_the_model(client):
    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "My name is Zebedee."},
        {"role": "assistant", "content": "Nice to meet you, Zebedee."},
        {"role": "user", "content": [{"type": "text", "text": "What is my name?"}]},
    ]
    assert "Zebedee" in chat(client, messages, max_tokens=24).choices[0].message.content


def test_bad_request(client):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, temperature=3)
    assert caught.value.status_code == 400 and caught.value.param == "temperature"
    assert caught.value.code == "invalid_value" and caught.value.type == "invalid_request_error"


def test_too_long_for_the_context(client):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, max_tokens=8192)
    assert caught.value.code == "context_length_exceeded"
    assert "8192" in caught.value.message


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=FRANCE)
    assert caught.value.code == "model_not_found" and "gpt-5" in caught.value.message


def test_full_queue_is_a_rate_limit_error():
    server = Server("--max-concurrent-requests", "1", "--max-queue", "0")
    try:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        with chat(client, stream=True, max_tokens=2000, extra_body={"ignore_eos": True}) as stream:
            next(iter(stream))
            with pytest.raises(openai.RateLimitError) as caught:
                chat(client, max_tokens=1)
            assert caught.value.status_code == 429 and caught.value.type == "rate_limit_error"
            assert int(caught.value.response.headers["retry-after"]) >= 1
        server.wait_for(open=0)
        assert chat(client, max_tokens=1).usage.completion_tokens == 1
    finally:
        assert server.stop() == 0


def test_models(client):
    models = list(client.models.list())
    assert [model.id for model in models] == [NAME]
    assert client.models.retrieve(NAME).object == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("another")


def test_async_client(server):
    import asyncio

    async def talk():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
            options = {"model": NAME, "messages": FRANCE, "max_tokens": 8, "temperature": 0}
            answers = await asyncio.gather(*(client.chat.completions.create(**options) for _ in range(4)))
            stream = await client.chat.completions.create(stream=True, **options)
            text = "".join([event.choices[0].delta.content or "" async for event in stream])
            assert {answer.choices[0].message.content for answer in answers} == {text}

    asyncio.run(talk())
