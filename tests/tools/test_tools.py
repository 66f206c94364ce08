"""Checks the reference tooling against the formats' own packages and against itself computed another way.

Run by ctest where the packages in requirements.txt are installed: python -m unittest discover -s tests/tools
"""

import json
import pathlib
import tempfile
import unittest

import gguf
import numpy as np

import compare_greedy
import gguf_file
import gguf_to_hf
import make_tiny_models
import reference_llama


class GgufFileTest(unittest.TestCase):
    def test_dequantisation_equals_the_gguf_package(self):
        random = np.random.default_rng(1)
        for name, block, size, dequantise in gguf_file._TYPES.values():
            with self.subTest(name):
                raw = random.integers(0, 256, (64, size), dtype=np.uint8)
                raw &= 0xBF if block == 1 else 0xFF  # plain types: keep clear of not-a-number
                with np.errstate(invalid="ignore"):  # random scales include infinities
                    expected = gguf.quants.dequantize(raw.reshape(-1), gguf.GGMLQuantizationType[name])
                    np.testing.assert_array_equal(dequantise(raw).reshape(-1), expected.reshape(-1))

    def test_metadata_equals_the_gguf_package(self):
        path = pathlib.Path(__file__).parents[1] / "fuzz" / "corpus" / "gguf" / "small.gguf"
        ours = gguf_file.GgufFile(path).metadata
        theirs = {k: f.contents() for k, f in gguf.GGUFReader(path).fields.items() if not k.startswith("GGUF.")}
        self.assertEqual(ours, theirs)


class ReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.ids = np.random.default_rng(5).integers(3, make_tiny_models.VOCABULARY, 40).tolist()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def model(self, name, dtype=np.float32):
        path = pathlib.Path(self.folder.name) / f"{name}.gguf"
        if not path.exists():
            make_tiny_models.write_gguf(next(c for c in make_tiny_models.CASES if c.name == name), path, 3)
        return reference_llama.Model(path, dtype)

    def all_logits(self, model, parts):
        cache = reference_llama.Cache(model, len(self.ids))
        edges = np.cumsum([0] + parts)
        out = [model.forward(self.ids[a:b], [cache], [b - a]) for a, b in zip(edges[:-1], edges[1:])]
        return model.logits(np.concatenate(out))

    def test_the_cache_changes_nothing(self):
        for name in ("llama-f32", "qwen2-f32", "qwen3-f32"):
            with self.subTest(name):
                model = self.model(name, np.float64)
                whole = self.all_logits(model, [40])
                np.testing.assert_allclose(self.all_logits(model, [1] * 40), whole, rtol=0, atol=1e-9)
                np.testing.assert_allclose(self.all_logits(model, [7, 30, 3]), whole, rtol=0, atol=1e-9)

    def test_float32_is_close_to_float64(self):
        single, double = (self.all_logits(self.model("llama-f32", d), [40]) for d in (np.float32, np.float64))
        np.testing.assert_allclose(single, double, rtol=0, atol=1e-3)

    def test_one_token_attention_is_a_plain_sum(self):
        """One layer step written out with loops, without the tool's matrix shapes."""
        model = self.model("qwen3-f32", np.float64)
        random = np.random.default_rng(2)
        q = random.normal(size=(1, model.heads, model.head_size))
        keys, values = random.normal(size=(2, model.kv_heads, 9, model.head_size))
        got = model.attend(q, keys, values, 8).reshape(model.heads, model.head_size)
        for head in range(model.heads):
            kv = head * model.kv_heads // model.heads
            weights = [np.exp(sum(q[0, head] * keys[kv, t]) / model.head_size**0.5) for t in range(9)]
            expected = sum(w * values[kv, t] for t, w in enumerate(weights)) / sum(weights)
            np.testing.assert_allclose(got[head], expected, atol=1e-12)

    def test_the_two_layouts_of_rope_agree(self):
        """Rows reordered for Hugging Face and rotated in halves give what GGUF's rows rotated in pairs give."""
        model = self.model("llama-f32", np.float64)
        pairs = self.all_logits(model, [40])
        for block in model.blocks:
            block["attn_q"] = gguf_to_hf.split_halves(block["attn_q"], model.heads)
            block["attn_k"] = gguf_to_hf.split_halves(block["attn_k"], model.kv_heads)
        model.neox = True
        np.testing.assert_allclose(self.all_logits(model, [40]), pairs, rtol=0, atol=1e-9)


class ConversionTest(unittest.TestCase):
    def test_split_halves_undoes_the_published_permutation(self):
        rows = np.arange(4 * 64 * 3).reshape(4 * 64, 3)
        permuted = rows.reshape(4, 2, 32, 3).swapaxes(1, 2).reshape(rows.shape)
        np.testing.assert_array_equal(gguf_to_hf.split_halves(permuted, 4), rows)

    def test_bfloat16_rounds_to_nearest_even(self):
        values = np.array([1.0, 1.00390625, 1.01171875, -2.0, 1.0039065], np.float32)
        bits = np.frombuffer(gguf_to_hf.encode(values, "BF16"), np.uint16)
        self.assertEqual([hex(b) for b in bits], ["0x3f80", "0x3f80", "0x3f82", "0xc000", "0x3f81"])

    def test_safetensors_are_read_by_the_package(self):
        from safetensors.numpy import load_file

        with tempfile.TemporaryDirectory() as folder:
            case = next(c for c in make_tiny_models.CASES if c.name == "llama-f16")
            path = pathlib.Path(folder) / "m.gguf"
            make_tiny_models.write_gguf(case, path, 3)
            gguf_to_hf.convert(path, pathlib.Path(folder) / "hf", "F16", shards=2)
            index = json.loads((pathlib.Path(folder) / "hf" / "model.safetensors.index.json").read_text())["weight_map"]
            tensors = {}
            for file in set(index.values()):
                tensors |= load_file(pathlib.Path(folder) / "hf" / file)
            self.assertEqual(set(tensors), set(index))
            embedding = gguf_file.GgufFile(path).tensor("token_embd.weight")
            np.testing.assert_array_equal(tensors["model.embed_tokens.weight"].astype(np.float32), embedding)


class CompareTest(unittest.TestCase):
    def test_first_difference(self):
        first = compare_greedy.first_difference
        self.assertIsNone(first([5, 6, 7], [5, 6, 7], [2]))
        self.assertEqual(first([5, 9, 7], [5, 6, 7], [2]), 1)
        self.assertIsNone(first([5], [5, 2, 7], [2]))  # stopped where the reference ends
        self.assertIsNone(first([5, 2], [5, 2, 7], [2]))  # the same with the end token delivered
        self.assertIsNone(first([5, 2, 8], [5, 2, 7], [2]))  # what follows an end token does not count
        self.assertEqual(first([5], [5, 6, 7], [2]), 1)  # stopped too early
        self.assertEqual(first([5, 6, 7], [5, 2, 7], [2]), 1)  # did not stop


if __name__ == "__main__":
    unittest.main()
