"""Text completions with the official client: every kind of prompt, scoring as evaluation harnesses do it, extensions."""

import openai
import pytest

TEXT = "The three primary colours are"
END = 2  # <|im_end|>


def ids_of(server, text):
    return server.post("/tokenize", {"prompt": text})["tokens"]


def test_text_and_ids_are_the_same_prompt(complete, server):
    ids = ids_of(server, TEXT)
    by_text = complete(TEXT, max_tokens=12)
    by_ids = complete(ids, max_tokens=12)
    assert by_text.choices[0].text == by_ids.choices[0].text != ""
    assert by_text.usage == by_ids.usage and by_text.usage.prompt_tokens == len(ids)


def test_lists_answer_in_order(complete, server):
    texts = [TEXT, "Once upon a time", "def main():"]
    alone = [complete(text, max_tokens=8).choices[0].text for text in texts]
    together = complete(texts, max_tokens=8)
    assert [choice.text for choice in together.choices] == alone
    assert [choice.index for choice in together.choices] == [0, 1, 2]
    assert together.usage.completion_tokens == 24
    of_ids = complete([ids_of(server, text) for text in texts], max_tokens=8)
    assert [choice.text for choice in of_ids.choices] == alone


def test_n_times_prompts(complete):
    answer = complete([TEXT, "Hello"], n=2, temperature=1, seed=3, max_tokens=6)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    again = complete("Hello", n=2, temperature=1, seed=3, max_tokens=6)
    assert [choice.text for choice in answer.choices[2:]] == [choice.text for choice in again.choices]


def test_default_max_tokens(complete):
    assert complete(TEXT, extra_body={"ignore_eos": True}).usage.completion_tokens == 16


def test_stream_equals_whole(complete):
    options = {"max_tokens": 16, "logprobs": 2, "temperature": 1, "seed": 9, "extra_body": {"return_token_ids": True}}
    whole = complete([TEXT, "Hi"], **options)
    texts, tokens, logprobs, offsets = ["", ""], [[], []], [[], []], [[], []]
    for event in complete([TEXT, "Hi"], stream=True, **options):
        for choice in event.choices:
            texts[choice.index] += choice.text
            tokens[choice.index] += choice.token_ids or []
            if choice.logprobs:
                logprobs[choice.index] += choice.logprobs.token_logprobs
                offsets[choice.index] += choice.logprobs.text_offset
    for choice in whole.choices:
        assert texts[choice.index] == choice.text
        assert tokens[choice.index] == choice.token_ids
        assert logprobs[choice.index] == choice.logprobs.token_logprobs
        assert offsets[choice.index] == choice.logprobs.text_offset


def test_scoring_as_harnesses_do_it(complete, server):
    """Log-likelihood of a continuation: echo with one more token, of which the last entry is dropped."""
    context = ids_of(server, TEXT)
    generated = complete(context, max_tokens=10, logprobs=1, extra_body={"return_token_ids": True}).choices[0]
    scored = complete(context + generated.token_ids, max_tokens=1, echo=True, logprobs=1).choices[0]
    lp = scored.logprobs
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.top_logprobs) == len(context) + 11
    assert lp.token_logprobs[0] is None and lp.top_logprobs[0] is None
    assert scored.text.startswith(TEXT + generated.text)
    assert "".join(lp.tokens) == scored.text
    assert [scored.text[offset:].startswith(token) for offset, token in zip(lp.text_offset, lp.tokens)] == [True] * len(lp.tokens)
    # What was generated one token at a time scores the same, to the bit, as a prompt in one piece.
    assert lp.token_logprobs[len(context) : -1] == generated.logprobs.token_logprobs
    # And being greedy, each was the best: what a harness calls is_greedy.
    for value, top in zip(lp.token_logprobs[len(context) : -1], lp.top_logprobs[len(context) : -1]):
        assert value == max(top.values())


def test_scoring_a_batch(complete, server):
    prompts = [ids_of(server, text) for text in (TEXT + " red, green and blue.", "2 + 2 = 4", "Paris is in France")]
    together = complete(prompts, max_tokens=1, echo=True, logprobs=1)
    for prompt, choice in zip(prompts, together.choices):
        alone = complete(prompt, max_tokens=1, echo=True, logprobs=1).choices[0]
        assert choice.logprobs == alone.logprobs
        assert len(choice.logprobs.tokens) == len(prompt) + 1


def test_scoring_without_generating(complete):
    answer = complete("2 + 2 = 4", max_tokens=0, echo=True, logprobs=0)
    assert answer.choices[0].text == "2 + 2 = 4"
    assert answer.usage.completion_tokens == 0
    assert len(answer.choices[0].logprobs.tokens) == answer.usage.prompt_tokens


def test_echo_without_logprobs(complete):
    plain = complete(TEXT, max_tokens=6).choices[0].text
    assert complete(TEXT, max_tokens=6, echo=True).choices[0].text == TEXT + plain


def test_seeds(complete):
    def draw(seed):
        return complete(TEXT, max_tokens=20, temperature=1, top_p=0.95, seed=seed).choices[0].text

    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in range(4)}) == 4


def test_logit_bias(complete, server):
    (first,) = complete(TEXT, max_tokens=1, extra_body={"return_token_ids": True}).choices[0].token_ids
    banned = complete(TEXT, max_tokens=1, logit_bias={str(first): -100}, extra_body={"return_token_ids": True})
    assert banned.choices[0].token_ids != [first]
    (zebra,) = ids_of(server, " zebra")[:1]
    forced = complete(TEXT, max_tokens=4, logit_bias={str(zebra): 100}, extra_body={"return_token_ids": True})
    assert forced.choices[0].token_ids == [zebra] * 4


def test_return_token_ids(complete, server):
    choice = complete(TEXT, max_tokens=5, extra_body={"return_token_ids": True}).choices[0]
    assert choice.prompt_token_ids == ids_of(server, TEXT)
    assert len(choice.token_ids) == 5
    assert server.post("/detokenize", {"tokens": choice.token_ids})["prompt"] == choice.text


def test_stop_token_ids(complete, server):
    full = complete(TEXT, max_tokens=12, extra_body={"return_token_ids": True}).choices[0]
    stop = full.token_ids[6]
    at = full.token_ids.index(stop)
    cut = complete(TEXT, max_tokens=12, extra_body={"return_token_ids": True, "stop_token_ids": [stop]}).choices[0]
    # The token that ended it is named among the ids, and is no output.
    assert cut.token_ids == full.token_ids[: at + 1]
    assert cut.text == server.post("/detokenize", {"tokens": full.token_ids[:at]})["prompt"]
    assert cut.finish_reason == "stop"


def test_end_token_min_tokens_and_ignore_eos(complete):
    eager = {"max_tokens": 9, "logit_bias": {str(END): 100}}
    ends = complete(TEXT, **eager)
    assert (ends.usage.completion_tokens, ends.choices[0].finish_reason, ends.choices[0].text) == (0, "stop", "")
    held = complete(TEXT, extra_body={"min_tokens": 5, "return_token_ids": True}, **eager)
    assert held.choices[0].token_ids[5:] == [END] and END not in held.choices[0].token_ids[:5]
    assert held.usage.completion_tokens == 5
    ignored = complete(TEXT, extra_body={"ignore_eos": True, "return_token_ids": True}, **eager)
    assert ignored.choices[0].token_ids == [END] * 9
    assert ignored.choices[0].finish_reason == "length"


def test_stop_strings(complete):
    text = complete(TEXT, max_tokens=20).choices[0].text
    for stop in (text[3:9], text[1:2], text[-4:]):
        cut = complete(TEXT, max_tokens=20, stop=[stop])
        assert cut.choices[0].text == text[: text.index(stop)]
        assert cut.choices[0].finish_reason == "stop"
        kept = complete(TEXT, max_tokens=20, stop=[stop], extra_body={"include_stop_str_in_output": True})
        assert kept.choices[0].text == text[: text.index(stop) + len(stop)]


@pytest.mark.parametrize("prompt", ["", [], [[]], [TEXT, ""], [49152], [-1], ["a", 1]])
def test_prompts_that_are_refused(complete, prompt):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(prompt, max_tokens=1)
    assert caught.value.param == "prompt"
