#!/usr/bin/env python3
"""Turns a GGUF file of a llama, qwen2 or qwen3 model into a Hugging Face folder, to test that both load the same way.

  gguf_to_hf.py --model M.gguf --out DIR [--dtype F32|F16|BF16] [--shards N]

The weights are the dequantised ones, so an F32 folder computes exactly what reference_llama.py computes from the GGUF
file. Writes config.json, generation_config.json, model.safetensors (or shards and their index) and, for the
vocabularies that make_prompts.py knows, tokenizer.json and tokenizer_config.json. Needs numpy and tokenizers.
"""

import argparse
import json
import pathlib

import numpy as np

from gguf_file import GgufFile

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def encode(values, dtype):
    """Little-endian bytes of a float32 array in another type, rounded to the nearest, ties to even."""
    if dtype == "F32":
        return values.tobytes()
    if dtype == "F16":
        return values.astype(np.float16).tobytes()
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def split_halves(rows, heads):
    """GGUF's llama rows pair neighbours for RoPE; Hugging Face pairs the two halves of a head."""
    return rows.reshape(heads, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def hf_tensors(gguf, config):
    for name in gguf.tensors:
        if name == "rope_freqs.weight":
            continue  # said by rope_scaling in config.json
        stem, kind = name.rsplit(".", 1)
        values = gguf.tensor(name)
        if stem in TOP_NAMES:
            yield f"{TOP_NAMES[stem]}.{kind}", values
            continue
        _, layer, part = stem.split(".")
        if config["model_type"] == "llama" and part in ("attn_q", "attn_k"):
            values = split_halves(values, config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"])
        yield f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}", np.ascontiguousarray(values)


def hf_config(gguf, dtype, rope_scaling):
    meta = gguf.metadata
    arch = meta["general.architecture"]

    def hyper(name, default=None):
        return meta.get(f"{arch}.{name}", default)

    heads = hyper("attention.head_count")
    if "rope_freqs.weight" in gguf and rope_scaling is None:
        raise SystemExit("the file scales RoPE by a tensor: say by what formula with --rope-scaling JSON")
    config = {
        "architectures": [CLASSES[arch]],
        "model_type": arch,
        "vocab_size": gguf.tensors["token_embd.weight"][0][0],
        "hidden_size": hyper("embedding_length"),
        "intermediate_size": hyper("feed_forward_length"),
        "num_hidden_layers": hyper("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": hyper("attention.head_count_kv", heads),
        "head_dim": hyper("attention.key_length", hyper("embedding_length") // heads),
        "hidden_act": "silu",
        "max_position_embeddings": hyper("context_length"),
        "rms_norm_eps": float(f"{hyper('attention.layer_norm_rms_epsilon'):.7g}"),
        "rope_theta": hyper("rope.freq_base", 10000.0),
        "rope_scaling": rope_scaling,
        "attention_bias": "blk.0.attn_q.bias" in gguf,
        "tie_word_embeddings": "output.weight" not in gguf,
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta.get("tokenizer.ggml.eos_token_id"),
        "torch_dtype": {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[dtype],
    }
    return config


def write_tokenizer(gguf, out):
    from make_prompts import tokenizer_of

    meta = gguf.metadata
    tokenizer_of(gguf).save(str(out / "tokenizer.json"))
    tokens = meta["tokenizer.ggml.tokens"]
    config = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": meta.get("tokenizer.ggml.add_bos_token", False)}
    for role in ("bos", "eos", "unknown", "padding"):
        token = meta.get(f"tokenizer.ggml.{role}_token_id")
        if token is not None:
            config[{"unknown": "unk", "padding": "pad"}.get(role, role) + "_token"] = tokens[token]
    if "tokenizer.chat_template" in meta:
        config["chat_template"] = meta["tokenizer.chat_template"]
    write_json(out / "tokenizer_config.json", config)


def write_safetensors(path, tensors):
    """tensors: name to (dtype, shape, bytes)."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            f.write(data)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(model, out, dtype="F32", shards=1, rope_scaling=None):
    gguf = GgufFile(model)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    config = hf_config(gguf, dtype, rope_scaling)
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", {key: config[key] for key in ("bos_token_id", "eos_token_id")})
    parts = [{} for _ in range(shards)]
    for i, (name, values) in enumerate(hf_tensors(gguf, config)):
        parts[i % shards][name] = (dtype, list(values.shape), encode(values, dtype))
    names = ["model.safetensors"]
    if shards > 1:
        names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        write_json(
            out / "model.safetensors.index.json",
            {"metadata": {}, "weight_map": {tensor: file for file, part in zip(names, parts) for tensor in part}},
        )
    for file, part in zip(names, parts):
        write_safetensors(out / file, part)
    if gguf.metadata.get("tokenizer.ggml.pre") == "smollm":
        write_tokenizer(gguf, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--dtype", choices=["F32", "F16", "BF16"], default="F32")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--rope-scaling", type=json.loads, metavar="JSON")
    args = parser.parse_args()
    convert(args.model, args.out, args.dtype, args.shards, args.rope_scaling)


if __name__ == "__main__":
    main()
