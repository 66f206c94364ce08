"""The commands of the cairn binary on the real model, with exact expectations where an independent computation gives them."""

import json
import pathlib
import subprocess
import sys

import pytest

from harness import BINARY, DATA, MODEL, PLUGINS, ROOT

TEXTS = [
    "", " ", "a", "Hello, world!", "The capital of France is Paris.", "  two  spaces\tand\ttabs  ", "\n\n\nline\r\nbreaks\n", "don't we'll I'VE they'RE",
    "1234567890 3.14159 1,000,000 2024-07-26", "def f(x):\n    return x**2  # square\n", "{\"key\": [1, 2, {\"a\": null}]}", "naïve café Ångström ßtraße",
    "Привет, мир! Как дела?", "你好，世界。今天天气很好。", "日本語のテキストとカタカナ", "한국어 문장입니다", "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया",
    "🦀 🇫🇷 👩‍👩‍👧‍👦 👍🏽", "e\u0301 vs \u00e9", "\u200bzero\u200dwidth\ufeff", "A" * 300, "ab" * 200, "<|im_start|>user\nhi<|im_end|>\n", "<|im_start|", "<|endoftext|><|im_end|>",
    "https://example.com/a?b=c&d=%20#e", "∑∫√≠≤≥ αβγδ", "x\u00a0y\u3000z", "MixedCASE camelCase snake_case kebab-case", "\x00\x01\x7f", "—–“”‘’…",
]  # fmt: skip


def cairn(*arguments, stdin=b"", check=True):
    result = subprocess.run([BINARY, "--log-level", "error", *arguments], input=stdin, capture_output=True, timeout=120, check=False)
    if check:
        assert result.returncode == 0, result.stderr.decode()
    return result


def running(*arguments):
    return cairn(*arguments, "--plugins", PLUGINS, "--model", MODEL, "--kv-cache-bytes", str(64 << 20))


@pytest.fixture(scope="module")
def reference():
    """The same vocabulary in Hugging Face's tokenizers: byte-level BPE that takes digits one at a time."""
    sys.path.insert(0, str(ROOT / "tests/tools"))
    import gguf_file
    import tokenizers

    metadata = gguf_file.GgufFile(MODEL).metadata
    assert metadata["tokenizer.ggml.pre"] == "smollm"
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(individual_digits=True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, metadata["tokenizer.ggml.token_type"]) if kind == 3]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_tokenize_as_the_reference_does_and_back(reference, text):
    ids = json.loads(cairn("tokenize", "--model", MODEL, stdin=text.encode()).stdout)
    assert ids == reference.encode(text).ids
    back = cairn("detokenize", "--model", MODEL, stdin=json.dumps(ids).encode()).stdout
    assert back == text.encode()


def test_tokenize_all_at_once(reference):
    text = "\n".join(TEXTS) * 20
    assert json.loads(cairn("tokenize", "--model", MODEL, stdin=text.encode()).stdout) == reference.encode(text).ids


def test_detokenize_skips_special_tokens():
    assert cairn("detokenize", "--model", MODEL, "--skip-special", stdin=b"[1, 19556, 2]").stdout.strip() == b"Hello"


def test_template(tmp_path):
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]))
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    arguments = ["template", "--model", MODEL, "--messages", str(messages)]
    assert cairn(*arguments).stdout.decode().rstrip("\n") == (expected + "<|im_start|>assistant\n").rstrip("\n")
    assert cairn(*arguments, "--no-generation-prompt").stdout.decode().rstrip("\n") == expected.rstrip("\n")


def test_run_prints_the_answer_and_nothing_else():
    result = running("run", "--temperature", "0", "--max-tokens", "16", "What is the capital of France?")
    assert result.stdout.decode().strip() == "The capital of France is Paris."


def test_run_raw_continues_as_the_fixture_does():
    with open(DATA / "greedy_smollm2.json", encoding="utf-8") as f:
        prompts = json.load(f)["prompts"]
    # A short prompt whose continuation the reference was sure of at every one of the first tokens.
    prompt = next(p for p in prompts if len(p["prompt_ids"]) < 40 and min(p["gaps"][:16]) > 0.5 and 2 not in p["ids"][:17])

    def text(ids):
        return cairn("detokenize", "--model", MODEL, stdin=json.dumps(ids).encode()).stdout.decode()

    answer = running("run", "--raw", "--temperature", "0", "--max-tokens", "16", text(prompt["prompt_ids"]))
    assert answer.stdout.decode().strip() == text(prompt["ids"][:16]).strip()


def test_run_is_reproducible_with_a_seed():
    answers = {running("run", "--seed", "5", "--max-tokens", "12", "Tell me a story.").stdout for _ in range(2)}
    assert len(answers) == 1


def test_plugins():
    listed = cairn("plugins", "list", "--plugins", PLUGINS).stdout.decode()
    assert "ai.cairn.echo 0.1.0" in listed and "ai.cairn.llama 0.1.0" in listed and "qwen3" in listed
    shown = cairn("plugins", "inspect", str(pathlib.Path(PLUGINS) / "echo.so")).stdout.decode()
    assert "ai.cairn.echo" in shown and "can load it" in shown


def test_models():
    (model,) = (entry for entry in json.loads(cairn("models", "--models", str(pathlib.Path(MODEL).parent), "--json").stdout) if entry["path"] == MODEL)
    assert (model["format"], model["architecture"], model["tensors"]) == ("gguf", "llama", 272)


def test_bench():
    arguments = ["--streams", "1", "2", "--prompt-tokens", "8", "--output-tokens", "8", "--prefill-tokens", "32", "--repeats", "1", "--json"]
    results = json.loads(running("bench", *arguments).stdout)
    assert len(results) == 3 and all(result["tokens_per_second"] > 0 for result in results)


def test_version():
    assert cairn("version").stdout == cairn("--version").stdout == b"cairn 0.1.0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"], ["run", "x"], ["tokenize"], ["tokenize", "--model", "/nonexistent.gguf"], ["tokenize", "--model", BINARY], ["nonsense"], ["plugins"],
        ["plugins", "inspect", MODEL], ["serve", "--plugins", PLUGINS, "--model", MODEL, "--port", "70000"], ["serve", "--plugins", "/nonexistent", "--model", MODEL],
        ["serve", "--plugins", PLUGINS, "--plugin", "ai.cairn.nothing", "--port", "0"], ["run", "--plugins", PLUGINS, "--model", BINARY, "x"],
        ["run", "--plugins", PLUGINS, "--model", MODEL, "--temperature", "9", "x"], ["detokenize", "--model", MODEL],
    ],
    ids=lambda arguments: " ".join(pathlib.Path(argument).name for argument in arguments),
)  # fmt: skip
def test_faults_are_told_and_exit_non_zero(arguments):
    result = cairn(*arguments, check=False)
    assert result.returncode in range(1, 128)
    assert result.stdout == b"" and len(result.stderr) > 10
