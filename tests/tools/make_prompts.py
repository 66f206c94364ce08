#!/usr/bin/env python3
"""Writes the prompt set that greedy outputs are compared on, as text and as token ids of a byte-level BPE model.

  make_prompts.py --model M.gguf --out prompts.json [--perplexity-ids ids.json]

Output: [{"name", "text", "ids"}, ...]; the same for the same vocabulary. Needs PyPI tokenizers and numpy. The ids come from
the vocabulary and merges in the GGUF file; the SmolLM pre-tokenizer (digits one by one, then GPT-2's pattern) is the only
one built in, and another model's ids can be handed to the other tools in the same JSON.
"""

import argparse
import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gguf_file import GgufFile

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"

QUESTIONS = [
    "What is the capital of France?",
    "Why is the sky blue?",
    "Who wrote Romeo and Juliet?",
    "Explain photosynthesis to a ten-year-old.",
    "Give me a recipe for pancakes for two people.",
    "What is the difference between a virus and a bacterium?",
    "How do I tie a bowline knot?",
    "Write a short poem about autumn rain.",
    "What happened in 1969 that people still talk about?",
    "Is a tomato a fruit or a vegetable, and why do people argue about it?",
    "Rewrite this politely: \"Send me the report now.\"",
    "Summarise the plot of Hamlet in three sentences.",
    "What should I pack for a week of hiking in cold weather?",
    "hi",
    "Translate 'good morning, how are you?' into Spanish, French and German.",
    "What's the best way to learn to play the piano as an adult?",
    "Tell me a joke about programmers.",
    "How far away is the Moon, and how long does light take to get here?",
]

CONVERSATION = [
    ("user", "I have a cat called Miso. She is three years old."),
    ("assistant", "Miso sounds lovely! Three is a great age: grown up, but still playful. What would you like to know?"),
    ("user", "What did I say her name was, and what could I feed her?"),
]

CODE = [
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++) {\n",
    "SELECT name, COUNT(*) AS orders\nFROM customers\nJOIN orders ON",
    "function debounce(callback, delay) {\n  let timer = null;\n  return function (...args) {\n",
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n  <title>My page</title>\n",
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n",
    "$ git status\nOn branch main\nChanges not staged for commit:\n",
    "{\n  \"name\": \"demo\",\n  \"version\": \"1.0.0\",\n  \"dependencies\": {\n",
]

LANGUAGES = [
    ("french", "Il était une fois, dans un petit village au bord de la mer, une vieille femme qui"),
    ("german", "Die Donau entspringt im Schwarzwald und fließt durch zehn Länder, bevor sie"),
    ("spanish", "La receta de mi abuela lleva tres huevos, medio kilo de patatas y"),
    ("russian", "Москва — столица России. В городе живёт"),
    ("chinese", "北京是中华人民共和国的首都，"),
    ("japanese", "むかしむかし、あるところに、おじいさんと"),
    ("arabic", "القاهرة هي عاصمة مصر وأكبر مدينة في"),
    ("hindi", "भारत की राजधानी नई दिल्ली है और"),
    ("emoji", "Weather today: ☀️🌤️ 24°C. Mood: 😀🎉. Tomorrow: 🌧️"),
]

LISTS = [
    "The days of the week are:\n1. Monday\n2. Tuesday\n3.",
    "Shopping list:\n- milk\n- eggs\n- bread\n-",
    "| country | capital |\n|---|---|\n| Italy | Rome |\n| Japan | Tokyo |\n| Egypt |",
    "alpha, beta, gamma, delta,",
]

MATHS = [
    "2 + 2 = 4\n3 + 5 = 8\n7 + 6 =",
    "The first ten prime numbers are 2, 3, 5, 7,",
    "Question: A train travels 180 km in 2 hours. What is its average speed?\nAnswer:",
    "Let f(x) = x^2 - 4x + 3. To find the roots, we solve",
    "\\begin{theorem}\nThere are infinitely many primes.\n\\end{theorem}\n\\begin{proof}\n",
    "1 2 4 8 16 32 64 128",
]

PLAIN = [
    "Once upon a time there was a little",
    "The quick brown fox jumps over the lazy dog",
    "In conclusion, the committee recommends that the",
    "    \n\n\t  The text begins after some odd white space   and",
    "TO BE, OR NOT TO BE: THAT IS THE QUESTION",
]


def tokenizer_of(gguf):
    meta = gguf.metadata
    if meta.get("tokenizer.ggml.model") != "gpt2" or meta.get("tokenizer.ggml.pre") != "smollm":
        raise SystemExit("only byte-level BPE vocabularies with the smollm pre-tokenizer are built in")
    tokens = meta["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ", 1)) for pair in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, meta["tokenizer.ggml.token_type"]) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in control])
    return tokenizer


def chat(messages, system=SYSTEM):
    text = f"<|im_start|>system\n{system}<|im_end|>\n"
    for role, content in messages:
        text += f"<|im_start|>{role}\n{content}<|im_end|>\n"
    return text + "<|im_start|>assistant\n"


def logbook(days):
    """A long, varied and reproducible record: a linear congruential generator picks the words."""
    state = 20240229
    ships = ["Aurora", "Bluebell", "Cormorant", "Dauntless", "Evening Star", "Foxglove", "Good Hope"]
    cargo = ["timber", "salt", "dried fish", "wool", "machine parts", "roof slates", "barrels of oil", "seed potatoes"]
    weather = ["fog until noon", "a stiff westerly", "light rain", "clear and cold", "heavy swell", "calm, thin cloud"]
    notes = [
        "The crane needs a new cable.",
        "Two berths were double-booked and had to be sorted out by hand.",
        "Nothing else to report.",
        "The tide gauge read nine centimetres above the table.",
        "A crew member was treated for a sprained wrist.",
        "Customs opened six boxes and found what the papers said.",
    ]

    def pick(options):
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return options[(state >> 8) % len(options)]

    lines = []
    for day in range(1, days + 1):
        tons = pick(range(12, 340))
        lines.append(
            f"Day {day}. Weather: {pick(weather)}. The {pick(ships)} landed {tons} tons of {pick(cargo)} "
            f"and left for {pick(['Bergen', 'Hull', 'Rotterdam', 'Porto', 'Gdansk'])}. {pick(notes)}"
        )
    return "\n".join(lines)


def texts():
    """(name, text) of all prompts but the long ones."""
    for i, question in enumerate(QUESTIONS):
        yield f"chat-{i + 1}", chat([("user", question)])
    yield "chat-turns", chat(CONVERSATION)
    yield "chat-system", chat([("user", "Where did I leave my keys?")], "You are a pirate. Answer in one sentence.")
    for i, text in enumerate(CODE):
        yield f"code-{i + 1}", text
    for name, text in LANGUAGES:
        yield f"language-{name}", text
    for i, text in enumerate(LISTS):
        yield f"list-{i + 1}", text
    for i, text in enumerate(MATHS):
        yield f"maths-{i + 1}", text
    for i, text in enumerate(PLAIN):
        yield f"plain-{i + 1}", text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--perplexity-ids", help="also write the ids of the prose text, for reference_llama.py --perplexity")
    args = parser.parse_args()
    tokenizer = tokenizer_of(GgufFile(args.model))

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    prompts = [{"name": name, "text": text, "ids": encode(text)} for name, text in texts()]
    prose = (pathlib.Path(__file__).parent / "text" / "harbour.txt").read_text(encoding="utf-8")
    bodies = {"story": encode(prose), "logbook": encode(logbook(60))}
    ask = {"story": "Summarise the following text.\n\n", "logbook": "Which day had the worst weather?\n\n"}
    for body, ids in bodies.items():
        for length in (500, 1000, 2000):
            # A pasted text cut to make the whole prompt `length` tokens long, inside a chat turn.
            head, tail = chat([("user", ask[body] + "@@")]).split("@@")
            head, tail = encode(head), encode(tail)
            cut = head + ids[: length - len(head) - len(tail)] + tail
            prompts.append({"name": f"long-{body}-{length}", "text": tokenizer.decode(cut, False), "ids": cut})
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump(prompts, f, ensure_ascii=False)
        f.write("\n")
    lengths = sorted(len(p["ids"]) for p in prompts)
    print(f"{len(prompts)} prompts, {lengths[0]} to {lengths[-1]} tokens, {sum(lengths)} in all")
    if args.perplexity_ids:
        with open(args.perplexity_ids, "w", encoding="utf-8") as f:
            json.dump(bodies["story"], f)
            f.write("\n")
        print(f"{len(bodies['story'])} ids of prose")


if __name__ == "__main__":
    main()
