#!/usr/bin/env python3
"""Compares a running server's greedy continuations, or its perplexity, with reference_llama.py's. Standard library only.

  compare_greedy.py --reference R.json --prompts P.json --url http://127.0.0.1:8000
  compare_greedy.py --fixture tests/e2e/data/greedy_smollm2.json --url http://127.0.0.1:8000
  compare_greedy.py --perplexity PPL.json --url http://127.0.0.1:8000

A prompt agrees when every token equals the reference's up to the last, or up to the reference's first end token where
the server stopped. Where the two part, the gap between the reference's two best logits says how close the call was.
Exits with 1 when a gap is above --max-gap, fewer than --min-agree prompts agree, or the perplexity is further off than
--max-relative. --api llama.cpp speaks to that project's server instead of an OpenAI-compatible one.
"""

import argparse
import concurrent.futures
import json
import math
import sys
import urllib.request


def post(url, body, timeout=600):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


def model_of(url):
    with urllib.request.urlopen(url + "/v1/models", timeout=60) as response:
        return json.load(response)["data"][0]["id"]


def continuation(args, model, ids, steps):
    if args.api == "llama.cpp":
        body = {"prompt": ids, "n_predict": steps, "temperature": 0, "return_tokens": True, "cache_prompt": False}
        return post(args.url + "/completion", body)["tokens"]
    body = {"model": model, "prompt": ids, "max_tokens": steps, "temperature": 0, "return_token_ids": True}
    return post(args.url + "/v1/completions", body)["choices"][0]["token_ids"]


def first_difference(got, expected, end_tokens):
    """The index of the first token that differs, or None when the two agree."""
    for i, (a, b) in enumerate(zip(got, expected)):
        if a != b:
            return i
        if a in end_tokens:
            return None
    if len(got) >= len(expected) or expected[len(got)] in end_tokens:
        return None
    return len(got)


def load_expected(args):
    """(steps, end tokens, [(name, prompt ids, expected ids, gap of the two best logits at each step)])."""
    with open(args.fixture or args.reference, encoding="utf-8") as f:
        data = json.load(f)
    if args.fixture:
        rows = [(p["name"], p["prompt_ids"], p["ids"], p["gaps"]) for p in data["prompts"]]
    else:
        with open(args.prompts, encoding="utf-8") as f:
            prompts = {p["name"]: p["ids"] for p in json.load(f)}
        rows = [
            (r["name"], prompts[r["name"]], r["ids"], [top[0][1] - top[1][1] for top in r["top"]]) for r in data["results"]
        ]
    return data["steps"], data["end_tokens"], rows


def compare_continuations(args):
    steps, end_tokens, rows = load_expected(args)
    model = None if args.api == "llama.cpp" else model_of(args.url)
    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        answers = list(pool.map(lambda row: continuation(args, model, row[1], steps), rows))
    agree, worst = 0, 0.0
    for (name, _, expected, gaps), got in zip(rows, answers):
        at = first_difference(got, expected, end_tokens)
        if at is None:
            agree += 1
            continue
        worst = max(worst, gaps[at])
        found = got[at] if at < len(got) else "stopped"
        print(f"{name}: step {at}: {found} instead of {expected[at]}, gap {gaps[at]:.4f}")
    print(f"{agree} of {len(rows)} prompts agree to the end; largest gap at a first difference {worst:.4f}")
    return agree >= args.min_agree and worst <= args.max_gap


def compare_perplexity(args):
    with open(args.perplexity, encoding="utf-8") as f:
        reference = json.load(f)
    ids = reference["ids"]
    body = {"prompt": ids, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1, "model": model_of(args.url)}
    logprobs = post(args.url + "/v1/completions", body)["choices"][0]["logprobs"]["token_logprobs"][1 : len(ids)]
    if len(logprobs) != len(ids) - 1:
        print(f"{len(logprobs)} log probabilities for {len(ids)} tokens")
        return False
    perplexity = math.exp(-sum(logprobs) / len(logprobs))
    relative = perplexity / reference["perplexity"] - 1
    print(f"perplexity {perplexity:.4f}, reference {reference['perplexity']:.4f}, {100 * relative:+.3f} %")
    return abs(relative) <= args.max_relative


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--reference", help="output of reference_llama.py --prompts")
    parser.add_argument("--prompts", help="the prompts it was given")
    parser.add_argument("--fixture", help="output of make_greedy_fixture.py, instead of the two above")
    parser.add_argument("--perplexity", help="output of reference_llama.py --perplexity")
    parser.add_argument("--api", choices=["openai", "llama.cpp"], default="openai")
    parser.add_argument("--parallel", type=int, default=1, help="requests in flight")
    parser.add_argument("--max-gap", type=float, default=0.5)
    parser.add_argument("--min-agree", type=int, default=0)
    parser.add_argument("--max-relative", type=float, default=0.005)
    args = parser.parse_args()
    args.url = args.url.rstrip("/")
    if bool(args.reference) != bool(args.prompts) or not (args.reference or args.fixture or args.perplexity):
        parser.error("give --reference with --prompts, --fixture, or --perplexity")
    passed = True
    if args.reference or args.fixture:
        passed = compare_continuations(args) and passed
    if args.perplexity:
        passed = compare_perplexity(args) and passed
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
