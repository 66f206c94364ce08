#!/usr/bin/env python3
"""Writes small GGUF and safetensors files with the reference writers (PyPI gguf and safetensors).

  make_weight_seeds.py --out tests/fuzz/corpus

They are committed: the fuzz targets start from them, and a unit test reads known values out of them.
"""

import argparse
import pathlib

import gguf
import numpy as np
import safetensors.numpy


def write_gguf(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("test.u8", 255)
    writer.add_int8("test.i8", -128)
    writer.add_uint16("test.u16", 65535)
    writer.add_int16("test.i16", -32768)
    writer.add_uint32("test.u32", 2**32 - 1)
    writer.add_int32("test.i32", -(2**31))
    writer.add_uint64("test.u64", 2**63 - 1)
    writer.add_key_value("test.i64", -(2**63), gguf.GGUFValueType.INT64)
    writer.add_float32("test.f32", 0.15625)
    writer.add_float64("test.f64", 1e300)
    writer.add_bool("test.bool", True)
    writer.add_string("test.string", "na\u00efve \u5317\u4eac")
    writer.add_token_list(["<s>", "a", "\u0120b"])
    writer.add_token_scores([0.0, -1.5, -2.0])
    writer.add_token_types([3, 1, 1])
    writer.add_tensor("f32", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("f16", np.array([[1.0, -2.0]], dtype=np.float16))
    blocks = gguf.quants.quantize(np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("q8_0", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_vocabulary(path):
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["x", "y"])
    writer.add_token_merges(["x y"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def write_safetensors(path):
    tensors = {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.array([1.0, -2.0], dtype=np.float16),
        "ids": np.array([[-1, 2**40]], dtype=np.int64),
        "scalar": np.array(7, dtype=np.uint8),
        "empty": np.zeros((0, 4), dtype=np.float32),
    }
    safetensors.numpy.save_file(tensors, path, metadata={"format": "np"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    out = pathlib.Path(parser.parse_args().out)
    for kind in ("gguf", "safetensors"):
        (out / kind).mkdir(parents=True, exist_ok=True)
    write_gguf(out / "gguf" / "small.gguf")
    write_vocabulary(out / "gguf" / "vocabulary.gguf")
    write_safetensors(out / "safetensors" / "small.safetensors")
    safetensors.numpy.save_file({}, out / "safetensors" / "empty.safetensors")
    index = '{"metadata": {"total_size": 8}, "weight_map": {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}}'
    (out / "safetensors" / "index.json").write_text(index + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
