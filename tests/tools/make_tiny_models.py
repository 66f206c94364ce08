#!/usr/bin/env python3
"""Writes tiny models with random weights, in every supported architecture and weight type, and what they must answer.

  make_tiny_models.py --out DIR

DIR gets prompts.json; per case CASE.gguf and CASE.reference.json (see reference_llama.py); for some cases a Hugging Face
folder CASE-hf that must answer the same. Deterministic. Needs numpy, gguf, tokenizers; takes seconds.
"""

import argparse
import dataclasses
import json
import math
import pathlib

import gguf
import numpy as np

import gguf_to_hf
import reference_llama

STEPS = 32
VOCABULARY = 320
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# The published formula of Llama 3.1, with a context short enough to matter for these prompts.
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@dataclasses.dataclass
class Case:
    name: str
    arch: str
    kind: str = "F32"  # of the matrices
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    tied: bool = True
    rope_base: float = 10000.0
    llama3: bool = False
    hf: str = ""  # type of the Hugging Face folder, if there is to be one
    shards: int = 1
    layers: int = 2
    width: int = 256
    inner: int = 512


CASES = [
    Case("llama-f32", "llama", hf="F32", shards=2),
    Case("llama-untied-f32", "llama", tied=False, kv_heads=4, rope_base=500000.0, hf="F32"),
    Case("llama-rope3-f32", "llama", llama3=True, kv_heads=1, hf="F32"),
    Case("llama-f16", "llama", "F16", hf="F16"),
    Case("llama-bf16", "llama", "BF16", hf="BF16"),
    *(Case(f"llama-{kind.lower()}", "llama", kind) for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")),
    Case("qwen2-f32", "qwen2", hf="F32", rope_base=1000000.0),
    Case("qwen2-q8_0", "qwen2", "Q8_0", tied=False),
    Case("qwen3-f32", "qwen3", heads=4, head_size=128, hf="F32", rope_base=1000000.0),
    Case("qwen3-q4_k", "qwen3", "Q4_K", heads=8, kv_heads=2, head_size=32),
]

# Standard deviation of a weight of random blocks, in units of the block's scale, found by sampling; and the ratio of the
# minima's scale to the quants' that centres them on zero.
K_BLOCKS = {"Q4_K": (250.0, 7.5), "Q5_K": (500.0, 15.5), "Q6_K": (350.0, 0.0)}


def random_blocks(random, rows, columns, kind, deviation):
    """K-quants have no quantiser in the gguf package: random bits with sensible scales are as good here."""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = random.integers(0, 256, (rows, columns // 256, size), dtype=np.uint8)
    spread, ratio = K_BLOCKS[kind]
    scale = np.float16(deviation / spread)
    if kind == "Q6_K":
        blocks[..., 192:208] = random.integers(8, 32, blocks[..., 192:208].shape, dtype=np.uint8)
        blocks[..., 208:210] = np.frombuffer(scale.tobytes(), np.uint8)
    else:
        blocks[..., 0:2] = np.frombuffer(scale.tobytes(), np.uint8)
        blocks[..., 2:4] = np.frombuffer(np.float16(float(scale) * ratio).tobytes(), np.uint8)
    return blocks.reshape(rows, -1)


def add_matrix(writer, random, name, rows, columns, kind):
    deviation = 1 / math.sqrt(columns)
    type_number = gguf.GGMLQuantizationType[kind]
    if kind in K_BLOCKS:
        data = random_blocks(random, rows, columns, kind, deviation)
    else:
        data = gguf.quants.quantize(random.normal(0, deviation, (rows, columns)).astype(np.float32), type_number)
    writer.add_tensor(name, data, raw_dtype=type_number)


def byte_characters():
    """GPT-2's printable stand-ins for the 256 bytes, in order of byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def add_vocabulary(writer, random):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = special + sorted(byte_characters())
    merges = []
    letters = [c for c in tokens[3:] if c.isascii() and c.isalpha()] + ["\u0120"]
    while len(tokens) < VOCABULARY:
        pair = [letters[int(random.integers(len(letters)))], letters[int(random.integers(len(letters) - 1))]]
        if "".join(pair) not in tokens:
            tokens.append("".join(pair))
            merges.append(" ".join(pair))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(special) + [1] * (VOCABULARY - len(special)))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def llama3_factors(case):
    """What each RoPE frequency is divided by."""
    s = LLAMA3_SCALING
    factors = []
    for i in range(0, case.head_size, 2):
        length = 2 * math.pi * case.rope_base ** (i / case.head_size)
        turns = s["original_max_position_embeddings"] / length
        if turns > s["high_freq_factor"]:
            factors.append(1.0)
        elif turns < s["low_freq_factor"]:
            factors.append(s["factor"])
        else:
            smooth = (turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
            factors.append(1 / ((1 - smooth) / s["factor"] + smooth))
    return np.array(factors, np.float32)


def write_gguf(case, path, seed):
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, case.arch)
    writer.add_name(f"tiny {case.name}")
    writer.add_block_count(case.layers)
    writer.add_context_length(1024)
    writer.add_embedding_length(case.width)
    writer.add_feed_forward_length(case.inner)
    writer.add_head_count(case.heads)
    writer.add_head_count_kv(case.kv_heads)
    writer.add_key_length(case.head_size)
    writer.add_value_length(case.head_size)
    writer.add_rope_dimension_count(case.head_size)
    writer.add_rope_freq_base(case.rope_base)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    add_vocabulary(writer, random)

    def vector(name, size, mean, deviation):
        writer.add_tensor(name, random.normal(mean, deviation, size).astype(np.float32))

    add_matrix(writer, random, "token_embd.weight", VOCABULARY, case.width, case.kind)
    vector("output_norm.weight", case.width, 3, 0.5)
    if not case.tied:
        add_matrix(writer, random, "output.weight", VOCABULARY, case.width, case.kind)
    if case.llama3:
        writer.add_tensor("rope_freqs.weight", llama3_factors(case))
    q, kv = case.heads * case.head_size, case.kv_heads * case.head_size
    for i in range(case.layers):
        block = f"blk.{i}."
        vector(block + "attn_norm.weight", case.width, 1, 0.2)
        vector(block + "ffn_norm.weight", case.width, 1, 0.2)
        for name, rows, columns in (
            ("attn_q", q, case.width),
            ("attn_k", kv, case.width),
            ("attn_v", kv, case.width),
            ("attn_output", case.width, q),
            ("ffn_gate", case.inner, case.width),
            ("ffn_up", case.inner, case.width),
            ("ffn_down", case.width, case.inner),
        ):
            add_matrix(writer, random, block + name + ".weight", rows, columns, case.kind)
        if case.arch == "qwen2":
            for name, rows in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
                vector(block + name + ".bias", rows, 0, 0.5)
        if case.arch == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                vector(block + name + ".weight", case.head_size, 1.5, 0.3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--cases", help="names of the cases wanted, separated by commas (default: all)")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    prompts = [
        {"name": f"random-{n}", "ids": random.integers(3, VOCABULARY, n).tolist()} for n in (1, 2, 7, 16, 33, 64, 129, 300)
    ]
    (out / "prompts.json").write_text(json.dumps(prompts) + "\n")
    wanted = args.cases.split(",") if args.cases else [case.name for case in CASES]
    for seed, case in enumerate(CASES):
        if case.name not in wanted:
            continue
        path = out / f"{case.name}.gguf"
        write_gguf(case, path, seed)
        model = reference_llama.Model(path, np.float32)
        results = reference_llama.generate(model, prompts, STEPS, quiet=True)
        reference = {"steps": STEPS, "dtype": "float32", "end_tokens": model.end_tokens, "results": results}
        (out / f"{case.name}.reference.json").write_text(json.dumps(reference) + "\n")
        if case.hf:
            scaling = LLAMA3_SCALING if case.llama3 else None
            gguf_to_hf.convert(path, out / f"{case.name}-hf", case.hf, case.shards, scaling)
        print(f"{case.name}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
