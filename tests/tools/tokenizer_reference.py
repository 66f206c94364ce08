#!/usr/bin/env python3
"""Makes reference data for the tokenizer tests with the PyPI package "tokenizers" (0.23 or later).

  tokenizer_reference.py fixtures DIR      trains small tokenizers, writes them and reference results into DIR
  tokenizer_reference.py check TOOL [N]    compares TOOL with the reference on N strings (5,000) per tokenizer, and on
                                           every tokenizer.json named by --json FILE. TOOL is tokenizer_probe.

The fixture format, little-endian: strings.bin is a sequence of u32 length and UTF-8 bytes. <name>.cases is a sequence
of u8 flags (bit 0: add special tokens, bit 1: special tokens are plain text), u16 index of the string, u16 count, u16
ids, u64 FNV-1a of the decoding with special tokens and of the one without. In <name>.json the model
"model-3" stands for the contents of model-3.json, "model-3 ignore_merges" for them with that option. The strings come
from a seed, so that any number of them can be made again.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = {
    "latin": "the of and to in is you that it he was for on are with as his they at be this have from or one had by word "
             "but not what all were we when your can said there use an each which she do how their if will up other about "
             "don't can't we've they're I'm it's he'd she'll WE'VE Don'T naïve café über straße Ærø żółw ǅ İstanbul ſ ﬁ "
             "HTTPServer parseJSON snake_case camelCase x86_64 e.g. U.S.A.",
    "cyrillic": "и в не на я быть он с что а по это она этот к но они мы весь который из у Москва ЁЛКА ёж ПРИВЕТ Україна",
    "greek": "και το να του η της με που την από για Ελλάδα ΣΊΣΥΦΟΣ σίσυφος ἀρχή ᾧ",
    "arabic": "في من على أن إلى التي الذي هذا كان السلام عليكم مُحَمَّد ١٢٣٤٥ ۱۲۳ لا",
    "hebrew": "של את על לא זה עם שלום עולם בְּרֵאשִׁית ירושלים",
    "devanagari": "के का में है की से को और नमस्ते दुनिया क्षत्रिय १२३ हिन्दी",
    "thai": "การ ที่ และ ใน ของ มี ได้ สวัสดี ชาวโลก ๑๒๓ ภาษาไทย",
    "cjk": "的 一 是 不 了 人 我 在 有 他 你好世界 中文分词 日本語 こんにちは カタカナ ー 漢字かな交じり文 東京都 𠮷野家 ㍿ ﾊﾝｶｸ ｆｕｌｌ",
    "korean": "이 그 에 가 는 을 안녕하세요 세계 한국어 가각간 ㄱㄴ 각",
    "other": "ကို မြန်မာ አማርኛ ქართული հայերեն ភាសាខ្មែរ ລາວ བོད தமிழ் తెలుగు ગુજરાતી ᠮᠣᠩᠭᠣᠯ ᏣᎳᎩ",
    "emoji": "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽 ❤️ ☕ 🤷‍♂️ 1️⃣ 🧑🏿‍🚀 ✈︎",
    "numbers": "0 7 42 123 1234 12345 1234567 3.14159 -1e10 0xDEADBEEF 1,000,000 ½ ² Ⅷ ٣ 2024-11-30 10:45:00 100%",
    "marks": "é ã́ ñ Å Å ﬀ ﷺ ḍ̇ q̣̇ Z͑ͫ̓ͪ̂ͫ̽͏ a̐éö̲ ̈alone",
    "symbols": "! \" # $ % & ' ( ) * + , - . / : ; < = > ? @ [ \\ ] ^ _ ` { | } ~ — … “ ” « » 、 。 ！ ？ € £ ¥ © ™ ± ÷ ∑ ∞ → ¡ ¿ · ، ؟ ।",
    "code": "def f(x): return x+1 for(int i=0;i<n;++i){ a[i]*=2; } if (a && b || !c) // comment # include <stdio.h> "
            "SELECT * FROM t WHERE a='b'; <div class=\"x\">&nbsp;</div> \\n \\t {\"key\": [1,2,3]} λx→x https://example.org/a?b=c&d=%20",
    "odd": "\u0000 \u0001 \u001b[0m \u007f \u0085 \u00a0 \u00ad \u180e \u200b \u200d \u2028 \u2029 \u202e \u205f \u3000 \ufeff \ufffd \ue000 \U0010ffff \u0378",
    "special": "<s> </s> <unk> <pad> [CLS] [SEP] [MASK] <|im_start|> <|im_end|> <|endoftext|> <extra> <0x41> ▁ ## ##ing Ġthe <mask>",
}
SPACES = [" ", " ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "", "", "\u00a0", "\u3000", "        ", "\n\t\t", " \u200b"]


def strings(count, seed):
    """Mixed strings: words of one or several scripts, white space of every kind, random characters, long runs."""
    rng = random.Random(seed)
    pools = {k: v.split(" ") for k, v in WORDS.items()}
    names = list(pools)
    out = ["", " ", "  ", "\n", "a", " a", "a ", "Hello, world!", "   leading and trailing   ", "a" * 300, " " * 100,
           "ab" * 150, "1" * 70, "!?" * 60, "\n" * 40, "あ" * 100, "é" * 100, "👍" * 40, "<s>" * 5, " \t" * 30]
    while len(out) < count:
        kind = rng.random()
        if kind < 0.35:
            chosen = [rng.choice(names)]
        elif kind < 0.85:
            chosen = [rng.choice(names) for _ in range(3)] + ["latin"]
        else:
            chosen = None
        n = rng.randint(1, 14)
        text = rng.choice(["", "", "", " ", "\n"])
        for _ in range(n):
            if chosen:
                w = rng.choice(pools[rng.choice(chosen)])
                if rng.random() < 0.1:
                    w = w.upper() if rng.random() < 0.5 else w.capitalize()
                text += w + rng.choice(SPACES)
            else:
                block = rng.choice([(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x600), (0x600, 0xE00), (0x1E00, 0x2200), (0x2200, 0x2C00),
                                    (0x3000, 0x3400), (0x4E00, 0x9FFF), (0xAC00, 0xD7A0), (0xF900, 0xFFF0), (0x1D400, 0x1D7FF)])
                # Only characters whose properties every Unicode version in use agrees on.
                run = [chr(rng.randrange(*block)) for _ in range(rng.randint(1, 6))]
                text += "".join(c for c in run if unicodedata.ucd_3_2_0.category(c) != "Cn") + rng.choice(SPACES)
        out.append(text)
    return out


def corpus():
    """Training text: the same pools in another order, with frequent words frequent."""
    rng = random.Random(7)
    lines = []
    for _ in range(6000):
        name = rng.choice(["latin"] * 8 + ["code"] * 2 + list(WORDS)[:-2])
        pool = WORDS[name].split(" ")
        lines.append(" ".join(pool[min(int(rng.expovariate(0.15)), len(pool) - 1)] for _ in range(12)))
    return lines


CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TAIL_SLASH = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
FRONT = r"[^\r\n\p{L}\p{N}]?"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK_V3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
               r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
# As the families' tokenizer.json files have them; "kimi" with Ruby's intersection of sets.
PATTERNS = {
    "llama3": [CONTRACTIONS + "|" + FRONT + r"\p{L}+|\p{N}{1,3}" + TAIL],
    "qwen2": [CONTRACTIONS + "|" + FRONT + r"\p{L}+|\p{N}" + TAIL],
    "qwen35": [CONTRACTIONS + "|" + FRONT + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "gpt4o": [f"{FRONT}{UPPER}*{LOWER}+{CONTRACTIONS}?|{FRONT}{UPPER}+{LOWER}*{CONTRACTIONS}?|\\p{{N}}{{1,3}}{TAIL_SLASH}"],
    "tekken": [f"{FRONT}{UPPER}*{LOWER}+|{FRONT}{UPPER}+{LOWER}*|\\p{{N}}{TAIL_SLASH}"],
    "deepseek-v3": [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "starcoder": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, r"[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "bloom": [r" ?[^(\s|.,!?…。，、।۔،)]+"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [CONTRACTIONS + "|" + FRONT + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "exaone-moe": [CONTRACTIONS + "|" + FRONT + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", f"{FRONT}{UPPER}*{LOWER}+{CONTRACTIONS}?|{FRONT}{UPPER}+{LOWER}*{CONTRACTIONS}?|\\p{{N}}{{1,3}}{TAIL_SLASH}"],
    "kimi-k2": [r"[\p{Han}]+|" + f"{FRONT}[{UPPER[1:-1]}&&[^\\p{{Han}}]]*[{LOWER[1:-1]}&&[^\\p{{Han}}]]+{CONTRACTIONS}?|"
                f"{FRONT}[{UPPER[1:-1]}&&[^\\p{{Han}}]]+[{LOWER[1:-1]}&&[^\\p{{Han}}]]*{CONTRACTIONS}?|\\p{{N}}{{1,3}}{TAIL}"],
    "trailing-space": [r"\s+$", r"[^\n]{1,3}+"],
    "words": [r"\w+|[^\w\s]+", r"\h{2}", r"[[:punct:]]"],
}
CHAT = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level_base():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=1100, special_tokens=CHAT, show_progress=False,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return json.loads(t.to_str())["model"]


def byte_level(model, patterns, nfc=False, ignore_merges=False):
    t = Tokenizer(models.BPE())
    doc = json.loads(t.to_str())
    doc["model"] = dict(model, ignore_merges=ignore_merges)
    t = Tokenizer.from_str(json.dumps(doc))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns] + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    if nfc:
        t.normalizer = normalizers.NFC()
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in CHAT])
    t.add_tokens([AddedToken("<extra>", lstrip=True, rstrip=True), AddedToken("naïve", single_word=True, normalized=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", t.token_to_id("<|im_start|>"))])])
    return t


def build_all():
    """Name -> tokenizer."""
    base = byte_level_base()
    out = {"bpe-" + name: byte_level(base, patterns, name.startswith("qwen"), name == "llama3") for name, patterns in PATTERNS.items()}

    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    doc = json.loads(t.to_str())
    doc["model"] = base
    t = Tokenizer.from_str(json.dumps(doc))
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(["<s>", "</s>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    out["roberta"] = t

    byte_tokens = ["<0x%02X>" % i for i in range(256)]
    for name, metaspace in [("sp-bpe", None), ("sp-bpe-first", "first"), ("sp-bpe-always", "always")]:
        t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
        t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=1500, special_tokens=["<unk>", "<s>", "</s>"] + byte_tokens,
                                                            limit_alphabet=300, show_progress=False))
        doc = json.loads(t.to_str())
        doc["added_tokens"] = [a for a in doc["added_tokens"] if not a["content"].startswith("<0x")]
        t = Tokenizer.from_str(json.dumps(doc))
        if metaspace is None:
            t.pre_tokenizer = None
            t = Tokenizer.from_str(json.dumps(dict(json.loads(t.to_str()), pre_tokenizer=None)))
            t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
            t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        else:
            t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=metaspace, split=metaspace == "always")
            t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=metaspace)])
        t.add_tokens([AddedToken("<extra>", normalized=True), AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
        t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", t.token_to_id("<s>"))])
        out[name] = t

    for name, fallback in [("unigram", False), ("unigram-bytes", True)]:
        t = Tokenizer(models.Unigram())
        t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        t.decoder = decoders.Metaspace()
        t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=900, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>", "<pad>"],
                                                                show_progress=False))
        if fallback:
            doc = json.loads(t.to_str())
            doc["model"]["byte_fallback"] = True
            doc["model"]["vocab"] += [[b, -30.0] for b in byte_tokens]
            doc["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
            doc["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}
            t = Tokenizer.from_str(json.dumps(doc))
        t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", t.token_to_id("</s>"))])
        out[name] = t

    for name, lower in [("bert-uncased", True), ("bert-cased", False)]:
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=lower)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece()
        t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=1300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
        t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
        out[name] = t

    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>"], end_of_word_suffix="</w>", show_progress=False))
    out["bpe-suffix"] = t

    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.normalizer = normalizers.NFKD()
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")])
    t.decoder = decoders.WordPiece(cleanup=False)
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=200, show_progress=False))
    out["bpe-prefix"] = t

    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex(r"\p{P}+"), "contiguous"),
                                               pre_tokenizers.Digits(), pre_tokenizers.CharDelimiterSplit("-"), pre_tokenizers.Split(Regex("[aeiou]"), "merged_with_previous"),
                                               pre_tokenizers.Split(Regex(r"\p{L}+"), "removed", invert=True)])
    t.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=500, special_tokens=["<unk>"], show_progress=False))
    out["wordlevel"] = t
    return out


def cases(tokenizer, texts, seed):
    rng = random.Random(seed)
    out = []
    for text in texts:
        flags = rng.choice([0, 1, 1, 3])
        tokenizer.encode_special_tokens = bool(flags & 2)
        ids = tokenizer.encode(text, add_special_tokens=bool(flags & 1)).ids
        out.append((flags, text.encode(), ids, tokenizer.decode(ids, skip_special_tokens=False).encode(),
                    tokenizer.decode(ids, skip_special_tokens=True).encode()))
    tokenizer.encode_special_tokens = False
    return out


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def compact(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def write_fixtures(folder, pool_size=450, per_tokenizer=120):
    os.makedirs(folder, exist_ok=True)
    pool = [t for t in strings(pool_size, "fixtures") if len(t) < 400]
    with open(os.path.join(folder, "strings.bin"), "wb") as f:
        for text in pool:
            f.write(struct.pack("<I", len(text.encode())) + text.encode())
    written = []
    for name, t in build_all().items():
        document = json.loads(t.to_str())
        whole_words = document["model"].get("ignore_merges", False)
        model = dict(document["model"], ignore_merges=False) if whole_words else document["model"]
        if model not in written:
            written.append(model)
            with open(os.path.join(folder, "model-%d.json" % written.index(model)), "w") as f:
                f.write(compact(model))
        document["model"] = "model-%d%s" % (written.index(model), " ignore_merges" if whole_words else "")
        with open(os.path.join(folder, name + ".json"), "w") as f:
            f.write(compact(document))
        indexes = sorted(random.Random(name).sample(range(20, len(pool)), per_tokenizer - 20) + list(range(20)))
        with open(os.path.join(folder, name + ".cases"), "wb") as f:
            for i, (flags, _, ids, full, short) in zip(indexes, cases(t, [pool[i] for i in indexes], name)):
                f.write(struct.pack("<BHH", flags, i, len(ids)) + struct.pack("<%dH" % len(ids), *ids) + struct.pack("<QQ", fnv(full), fnv(short)))


def run_tool(tool, model, mode, items):
    data = b"".join(struct.pack("<II", flags, len(b)) + b for flags, b in items)
    return subprocess.run([tool, model, mode], input=data, stdout=subprocess.PIPE, check=True).stdout


def compare(tool, name, model_path, tokenizer, count, seed):
    items = cases(tokenizer, strings(count, seed), seed)
    lines = run_tool(tool, model_path, "enc", [(f, t) for f, t, *_ in items]).decode().split("\n")
    bad = 0
    for (flags, text, ids, *_), line in zip(items, lines):
        got = [int(x) for x in line.split()] if not line.startswith("ERR") else line
        if got != ids:
            bad += 1
            if bad <= 5:
                show = lambda i: [tokenizer.id_to_token(x) for x in i] if isinstance(i, list) else i
                print("  %s flags=%d %r\n    want %s %s\n    got  %s %s" % (name, flags, text.decode()[:200], ids[:40], show(ids)[:40], got[:40], show(got)[:40]))
    bad_decode = 0
    for keep, column in [(0, 3), (1, 4)]:
        raw = run_tool(tool, model_path, "dec", [(keep, struct.pack("<%dI" % len(i[2]), *i[2])) for i in items])
        pos = 0
        for item in items:
            (n,) = struct.unpack_from("<I", raw, pos)
            got = raw[pos + 4:pos + 4 + n]
            pos += 4 + n
            if got != item[column]:
                bad_decode += 1
                if bad_decode <= 3:
                    print("  %s decode skip=%d %s\n    want %r\n    got  %r" % (name, keep, item[2][:30], item[column][:200], got[:200]))
    print("%-20s %d strings, %d encodings differ, %d decodings differ" % (name, len(items), bad, bad_decode))
    return bad + bad_decode


def check(tool, count, extra, seed):
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, t in build_all().items():
            path = os.path.join(folder, name + ".json")
            t.save(path)
            bad += compare(tool, name, path, t, count, seed + name)
        for path in extra:
            t = Tokenizer.from_file(path)
            t.no_truncation()
            t.no_padding()
            bad += compare(tool, os.path.basename(path), path, t, count, seed)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(dest="command", required=True)
    sub.add_parser("fixtures").add_argument("folder")
    c = sub.add_parser("check")
    c.add_argument("tool")
    c.add_argument("count", nargs="?", type=int, default=5000)
    c.add_argument("--json", action="append", default=[])
    c.add_argument("--seed", default="a")
    args = parser.parse_args()
    if args.command == "fixtures":
        write_fixtures(args.folder)
        return 0
    return check(args.tool, args.count, args.json, args.seed)


if __name__ == "__main__":
    sys.exit(main())
