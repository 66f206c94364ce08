#!/usr/bin/env python3
"""Greedy continuation and perplexity of a Llama-type model in plain float32, from the dequantised weights of a GGUF file.

The yardstick for Cairn's own numbers: it shares no code and no rounding with it. Needs numpy only.

  reference_llama.py --model M.gguf --prompts P.json --out R.json     P: [{"name", "ids"}, ...]
  reference_llama.py --model M.gguf --perplexity IDS.json --out R.json  IDS: a list of token ids

R.json for prompts: {"steps", "results": [{"name", "prompt_tokens", "ids", "top": [[[id, logit] * 5] per step]}]}. Generation
runs its full length through end tokens; a comparison may stop at the first ("end_tokens" lists them).
"""

import argparse
import json
import sys
import time

import numpy as np

from gguf_file import GgufFile

PREFILL_CHUNK = 512  # tokens; bounds the memory of attention scores and of perplexity logits
TOP = 5


class Cache:
    """Keys and values of one sequence: per layer (kv heads, capacity, head size)."""

    def __init__(self, model, capacity):
        shape = (model.layers, model.kv_heads, capacity, model.head_size)
        self.keys = np.zeros(shape, model.dtype)
        self.values = np.zeros(shape, model.dtype)
        self.length = 0


class Model:
    def __init__(self, path, dtype):
        gguf = GgufFile(path)
        meta = gguf.metadata
        self.dtype = dtype
        self.arch = meta["general.architecture"]
        if self.arch not in ("llama", "qwen2", "qwen3"):
            raise SystemExit(f"architecture {self.arch} is not one of llama, qwen2, qwen3")

        def hyper(name, default=None):
            return meta.get(f"{self.arch}.{name}", default)

        if hyper("rope.scaling.type", "none") not in ("none", "linear"):
            raise SystemExit(f"RoPE scaling {hyper('rope.scaling.type')} is not computed by this tool")
        self.layers = hyper("block_count")
        self.heads = hyper("attention.head_count")
        self.kv_heads = hyper("attention.head_count_kv", self.heads)
        self.head_size = hyper("attention.key_length", hyper("embedding_length") // self.heads)
        self.epsilon = hyper("attention.layer_norm_rms_epsilon")
        self.neox = self.arch != "llama"
        self.rotary = hyper("rope.dimension_count", self.head_size)
        base = hyper("rope.freq_base", 10000.0)
        # Angles in double precision: at position 2000 a float32 angle is off by 1e-4.
        self.frequencies = float(base) ** (-np.arange(0, self.rotary, 2) / self.rotary)
        if "rope_freqs.weight" in gguf:
            self.frequencies /= gguf.tensor("rope_freqs.weight")
        if hyper("rope.scaling.type") == "linear":
            self.frequencies /= hyper("rope.scaling.factor")

        def load(name):
            return gguf.tensor(name).astype(dtype) if name in gguf else None

        self.embedding = load("token_embd.weight")
        head = load("output.weight")
        self.head = self.embedding if head is None else head
        self.final_norm = load("output_norm.weight")
        parts = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm")
        parts += ("ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
        self.blocks = []
        for i in range(self.layers):
            block = {part: load(f"blk.{i}.{part}.weight") for part in parts}
            block |= {part + "_bias": load(f"blk.{i}.{part}.bias") for part in parts}
            self.blocks.append(block)
        vocabulary = meta.get("tokenizer.ggml.tokens", [])
        named = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")
        self.end_tokens = sorted(
            {meta.get("tokenizer.ggml.eos_token_id", -1)} | {vocabulary.index(t) for t in named if t in vocabulary}
        )

    def norm(self, x, weight):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.dtype(self.epsilon)) * weight

    def linear(self, x, block, part):
        y = x @ block[part].T
        bias = block[part + "_bias"]
        return y if bias is None else y + bias

    def rotate(self, x, positions):
        """x: (tokens, heads, head size), one position per token."""
        angles = np.asarray(positions, np.float64)[:, None] * self.frequencies[None, :]
        cos = np.cos(angles).astype(self.dtype)[:, None, :]
        sin = np.sin(angles).astype(self.dtype)[:, None, :]
        out = x.copy()
        half = self.rotary // 2
        if self.neox:
            first, second = slice(0, half), slice(half, self.rotary)
        else:
            first, second = slice(0, self.rotary, 2), slice(1, self.rotary, 2)
        a, b = x[..., first], x[..., second]
        out[..., first] = a * cos - b * sin
        out[..., second] = a * sin + b * cos
        return out

    def attend(self, q, keys, values, start):
        """q: (tokens, heads, head size) at positions start.. ; keys and values: (kv heads, start + tokens, head size)."""
        tokens, group = q.shape[0], self.heads // self.kv_heads
        q = q.reshape(tokens, self.kv_heads, group, self.head_size).transpose(1, 2, 0, 3)
        q = q.reshape(self.kv_heads, group * tokens, self.head_size)
        scores = (q @ keys.transpose(0, 2, 1)) / self.dtype(np.sqrt(self.head_size))
        scores = scores.reshape(self.kv_heads, group, tokens, -1)
        if tokens > 1:
            hidden = np.arange(keys.shape[1])[None, :] > start + np.arange(tokens)[:, None]
            scores[:, :, hidden] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = scores.reshape(self.kv_heads, group * tokens, -1) @ values
        mixed = mixed.reshape(self.kv_heads, group, tokens, self.head_size).transpose(2, 0, 1, 3)
        return mixed.reshape(tokens, self.heads * self.head_size)

    def forward(self, ids, caches, counts):
        """One step over the concatenated tokens of several sequences, counts[i] of them for caches[i]; hidden states."""
        x = self.embedding[np.asarray(ids)]
        starts = [cache.length for cache in caches]
        positions = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, counts)])
        edges = np.cumsum([0] + list(counts))
        for layer, block in enumerate(self.blocks):
            h = self.norm(x, block["attn_norm"])
            q = self.linear(h, block, "attn_q").reshape(len(ids), self.heads, self.head_size)
            k = self.linear(h, block, "attn_k").reshape(len(ids), self.kv_heads, self.head_size)
            v = self.linear(h, block, "attn_v").reshape(len(ids), self.kv_heads, self.head_size)
            if block["attn_q_norm"] is not None:
                q, k = self.norm(q, block["attn_q_norm"]), self.norm(k, block["attn_k_norm"])
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            mixed = np.empty((len(ids), self.heads * self.head_size), self.dtype)
            for cache, start, a, b in zip(caches, starts, edges[:-1], edges[1:]):
                end = start + b - a
                cache.keys[layer, :, start:end] = k[a:b].transpose(1, 0, 2)
                cache.values[layer, :, start:end] = v[a:b].transpose(1, 0, 2)
                mixed[a:b] = self.attend(q[a:b], cache.keys[layer, :, :end], cache.values[layer, :, :end], start)
            x = x + self.linear(mixed, block, "attn_output")
            h = self.norm(x, block["ffn_norm"])
            gate = self.linear(h, block, "ffn_gate")
            gate = gate / (1 + np.exp(-gate)) * self.linear(h, block, "ffn_up")
            x = x + self.linear(gate, block, "ffn_down")
        for cache, count in zip(caches, counts):
            cache.length += count
        return x

    def logits(self, hidden):
        return self.norm(hidden, self.final_norm) @ self.head.T


def best(logits):
    """The TOP best (id, logit) pairs; of equal logits the lowest id first, as greedy decoding picks."""
    candidates = np.argpartition(-logits, 4 * TOP)[: 4 * TOP]
    order = candidates[np.lexsort((candidates, -logits[candidates]))][:TOP]
    return [[int(i), round(float(logits[i]), 5)] for i in order]


def generate(model, prompts, steps, quiet=False):
    def report(line):
        if not quiet:
            print(f"{line} {time.monotonic() - began:.0f} s", file=sys.stderr)

    caches, rows = [], []
    began = time.monotonic()
    for number, prompt in enumerate(prompts):
        ids = prompt["ids"]
        cache = Cache(model, len(ids) + steps)
        for at in range(0, len(ids), PREFILL_CHUNK):
            part = ids[at : at + PREFILL_CHUNK]
            hidden = model.forward(part, [cache], [len(part)])
        caches.append(cache)
        rows.append([best(model.logits(hidden[-1:])[0])])
        report(f"prompt {number + 1}/{len(prompts)}")
    for step in range(1, steps):
        last = [row[-1][0][0] for row in rows]
        logits = model.logits(model.forward(last, caches, [1] * len(caches)))
        for row, values in zip(rows, logits):
            row.append(best(values))
        report(f"step {step + 1}/{steps}")
    return [
        {"name": p["name"], "prompt_tokens": len(p["ids"]), "ids": [top[0][0] for top in row], "top": row}
        for p, row in zip(prompts, rows)
    ]


def perplexity(model, ids):
    cache = Cache(model, len(ids))
    losses = []
    for at in range(0, len(ids), PREFILL_CHUNK):
        part = ids[at : at + PREFILL_CHUNK]
        logits = model.logits(model.forward(part, [cache], [len(part)])).astype(np.float64)
        targets = ids[at + 1 : at + 1 + len(part)]
        logits = logits[: len(targets)]
        top = logits.max(axis=-1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(axis=-1))
        losses += (total - logits[np.arange(len(targets)), targets]).tolist()
    return {
        "ids": ids,
        "predicted_tokens": len(losses),
        "mean_nll": float(np.mean(losses)),
        "perplexity": float(np.exp(np.mean(losses))),
        "nll": [round(loss, 5) for loss in losses],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompts", help="JSON list of {name, ids}")
    what.add_argument("--perplexity", metavar="FILE_OF_IDS", help="JSON list of ids")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--only", type=int, default=0, help="the first N prompts only")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    args = parser.parse_args()
    model = Model(args.model, np.float32 if args.dtype == "float32" else np.float64)
    if args.perplexity:
        with open(args.perplexity) as f:
            out = perplexity(model, json.load(f))
        print(f"perplexity {out['perplexity']:.5f} over {out['predicted_tokens']} tokens")
    else:
        with open(args.prompts) as f:
            prompts = json.load(f)
        results = generate(model, prompts[: args.only or None], args.steps)
        out = {"steps": args.steps, "dtype": args.dtype, "end_tokens": model.end_tokens, "results": results}
    with open(args.out, "w") as f:
        json.dump(out, f)
        f.write("\n")


if __name__ == "__main__":
    main()
