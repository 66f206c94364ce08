#!/usr/bin/env python3
"""Picks prompts and their reference continuations into tests/e2e/data, so that the tests need neither numpy nor minutes.

  make_greedy_fixture.py --prompts P.json --reference R.json --model M.gguf --out F.json [--names chat-1,code-3]

"gaps" holds the difference of the reference's two best logits at each step. Texts of more than 500 characters are left
out. compare_greedy.py --fixture compares a server with the result.
"""

import argparse
import hashlib
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("prompts", "reference", "model", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--names", help="separated by commas (default: all)")
    args = parser.parse_args()
    with open(args.prompts, encoding="utf-8") as f:
        prompts = {p["name"]: p for p in json.load(f)}
    with open(args.reference, encoding="utf-8") as f:
        reference = json.load(f)
    results = {r["name"]: r for r in reference["results"]}
    with open(args.model, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    head = {"model_sha256": digest, "steps": reference["steps"], "end_tokens": reference["end_tokens"]}
    rows = []
    for name in args.names.split(",") if args.names else results:
        gaps = [round(top[0][1] - top[1][1], 4) for top in results[name]["top"]]
        row = {"name": name, "prompt_ids": prompts[name]["ids"]}
        if len(prompts[name].get("text", "")) in range(1, 501):
            row["text"] = prompts[name]["text"]
        rows.append(json.dumps(row | {"ids": results[name]["ids"], "gaps": gaps}, ensure_ascii=False))
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("{\n" + "\n".join(lines) + '\n "prompts": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
