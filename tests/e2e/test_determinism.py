"""16 requests together give, token for token and bit for bit, what each gives alone, prompts cut into chunks or not."""

import concurrent.futures
import json

from harness import DATA

TOKENS = 24


def requests():
    """16 bodies: prompts of 8 to 300 tokens, greedy and every kind of sampling."""
    with open(DATA / "greedy_smollm2.json", encoding="utf-8") as f:
        prompts = [p["prompt_ids"] for p in json.load(f)["prompts"] if len(p["prompt_ids"]) <= 300]
    prompts.sort(key=len)
    chosen = [prompts[i * (len(prompts) - 1) // 15] for i in range(16)]
    sampling = [
        {"temperature": 0},
        {"temperature": 1, "top_p": 0.9, "seed": 7},
        {"temperature": 1, "top_p": 0.9, "seed": 8, "presence_penalty": 0.5, "frequency_penalty": 0.3},
        {"temperature": 0.8, "top_k": 40, "min_p": 0.05, "seed": 9, "repetition_penalty": 1.2},
    ]
    return [
        {"prompt": ids, "max_tokens": TOKENS, "logprobs": 3, "return_token_ids": True, **sampling[i % 4]}
        for i, ids in enumerate(chosen)
    ]


def alone(server, bodies):
    return [server.complete(**body)["choices"] for body in bodies]


def together(server, bodies):
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(lambda body: server.complete(**body)["choices"], bodies))


def test_together_equals_alone_chunked_or_not(server, chunked_server):
    bodies = requests()
    expected = alone(server, bodies)
    assert len({tuple(choices[0]["token_ids"]) for choices in expected}) == 16
    assert sum(len(choices[0]["token_ids"]) for choices in expected) > 10 * TOKENS
    steps = server.metrics()["cairn_steps_total"]
    assert together(server, bodies) == expected
    # They did run together, not one after the other.
    assert server.metrics()["cairn_steps_total"] - steps < 4 * TOKENS
    assert together(chunked_server, bodies) == expected
    assert alone(chunked_server, bodies[::5]) == expected[::5]


def test_scored_prompts_are_equal_together_and_alone(server, chunked_server):
    bodies = [{**body, "echo": True, "max_tokens": 1, "temperature": 0} for body in requests()[2:14:3]]
    expected = alone(server, bodies)
    assert together(server, bodies) == expected
    assert together(chunked_server, bodies) == expected
