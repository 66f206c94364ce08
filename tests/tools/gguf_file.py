"""Reads a GGUF file and turns its tensors into float32, for the reference computation.

Written from the format's description and kept apart from the C++ reader, so that one checks the other. Trusts its
input; never point it at a file from outside.
"""

import mmap
import struct

import numpy as np

_SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}


def _f16(raw):
    return raw.copy().view("<f2").astype(np.float32)


def _q4_0(b):
    d = _f16(b[:, 0:2])
    q = np.concatenate([b[:, 2:] & 15, b[:, 2:] >> 4], axis=1).astype(np.float32)
    return d * (q - 8)


def _q4_1(b):
    d, m = _f16(b[:, 0:2]), _f16(b[:, 2:4])
    q = np.concatenate([b[:, 4:] & 15, b[:, 4:] >> 4], axis=1).astype(np.float32)
    return d * q + m


def _fifth_bits(raw):
    high = raw.copy().view("<u4")
    return ((high >> np.arange(32, dtype=np.uint32)) & 1).astype(np.uint8) << 4


def _q5_0(b):
    d = _f16(b[:, 0:2])
    q = np.concatenate([b[:, 6:] & 15, b[:, 6:] >> 4], axis=1) | _fifth_bits(b[:, 2:6])
    return d * (q.astype(np.float32) - 16)


def _q5_1(b):
    d, m = _f16(b[:, 0:2]), _f16(b[:, 2:4])
    q = np.concatenate([b[:, 8:] & 15, b[:, 8:] >> 4], axis=1) | _fifth_bits(b[:, 4:8])
    return d * q.astype(np.float32) + m


def _q8_0(b):
    return _f16(b[:, 0:2]) * b[:, 2:].copy().view(np.int8).astype(np.float32)


def _k_scales(raw):
    """Eight 6-bit scales and eight 6-bit minima from 12 bytes."""
    low, mid, high = raw[:, 0:4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    minima = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _nibble_groups(raw):
    """128 bytes of Q4_K / Q5_K: per 32 bytes, the 32 low nibbles, then the 32 high ones; shape (n, 8, 32)."""
    q = raw.reshape(-1, 4, 1, 32) >> np.array([0, 4], dtype=np.uint8).reshape(1, 1, 2, 1)
    return (q & 15).reshape(-1, 8, 32)


def _q4_k(b):
    d, dmin = _f16(b[:, 0:2]), _f16(b[:, 2:4])
    scales, minima = _k_scales(b[:, 4:16])
    q = _nibble_groups(b[:, 16:]).astype(np.float32)
    return ((d * scales)[:, :, None] * q - (dmin * minima)[:, :, None]).reshape(-1, 256)


def _q5_k(b):
    d, dmin = _f16(b[:, 0:2]), _f16(b[:, 2:4])
    scales, minima = _k_scales(b[:, 4:16])
    high = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)) & 1
    q = (_nibble_groups(b[:, 48:]) | (high << 4)).astype(np.float32)
    return ((d * scales)[:, :, None] * q - (dmin * minima)[:, :, None]).reshape(-1, 256)


def _q6_k(b):
    low = b[:, 0:128].reshape(-1, 2, 1, 64) >> np.array([0, 4], dtype=np.uint8).reshape(1, 1, 2, 1)
    low = (low & 15).reshape(-1, 2, 4, 32)
    high = b[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 1, 4, 1)
    q = (low | ((high & 3) << 4)).reshape(-1, 16, 16).astype(np.float32) - 32
    scales = b[:, 192:208].copy().view(np.int8).astype(np.float32)
    return ((_f16(b[:, 208:210]) * scales)[:, :, None] * q).reshape(-1, 256)


def _bf16(b):
    return (b.copy().view("<u2").astype(np.uint32) << 16).view(np.float32)


# Type number: (name, elements per block, bytes per block, function from (blocks, bytes) to (blocks, elements)).
_TYPES = {
    0: ("F32", 1, 4, lambda b: b.copy().view("<f4")),
    1: ("F16", 1, 2, _f16),
    30: ("BF16", 1, 2, _bf16),
    2: ("Q4_0", 32, 18, _q4_0),
    3: ("Q4_1", 32, 20, _q4_1),
    6: ("Q5_0", 32, 22, _q5_0),
    7: ("Q5_1", 32, 24, _q5_1),
    8: ("Q8_0", 32, 34, _q8_0),
    12: ("Q4_K", 256, 144, _q4_k),
    13: ("Q5_K", 256, 176, _q5_k),
    14: ("Q6_K", 256, 210, _q6_k),
}


class GgufFile:
    """`metadata`: key to value, numbers as Python numbers, arrays as lists. `tensors`: names in file order."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self._bytes = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        magic, version = self._unpack("<4sI")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path} is not GGUF version 2 or 3")
        tensor_count, key_count = self._unpack("<QQ")
        self.metadata = {}
        for _ in range(key_count):
            key = self._string()
            self.metadata[key] = self._value(self._unpack("<I")[0])
        self.tensors = {}
        for _ in range(tensor_count):
            name = self._string()
            dims = self._unpack("<" + "Q" * self._unpack("<I")[0])
            kind, offset = self._unpack("<IQ")
            self.tensors[name] = (tuple(reversed(dims)), kind, offset)
        alignment = self.metadata.get("general.alignment", 32)
        self._data = -(-self._at // alignment) * alignment

    def _unpack(self, layout):
        values = struct.unpack_from(layout, self._bytes, self._at)
        self._at += struct.calcsize(layout)
        return values

    def _string(self):
        (length,) = self._unpack("<Q")
        self._at += length
        return self._bytes[self._at - length : self._at].decode("utf-8", "surrogateescape")

    def _value(self, kind):
        if kind == 8:
            return self._string()
        if kind == 9:
            element, count = self._unpack("<IQ")
            if element in (8, 9):
                return [self._value(element) for _ in range(count)]
            dtype = np.dtype(_SCALARS[element])
            values = np.frombuffer(self._bytes, dtype, count, self._at)
            self._at += count * dtype.itemsize
            return values.tolist()
        dtype = np.dtype(_SCALARS[kind])
        value = np.frombuffer(self._bytes, dtype, 1, self._at)[0].item()
        self._at += dtype.itemsize
        return value

    def __contains__(self, name):
        return name in self.tensors

    def tensor(self, name):
        """The tensor as float32, outermost dimension first."""
        shape, kind, offset = self.tensors[name]
        if kind not in _TYPES:
            raise ValueError(f"tensor {name} has type number {kind}, which this tool does not dequantise")
        _, block, size, dequantise = _TYPES[kind]
        blocks = int(np.prod(shape)) // block
        raw = np.frombuffer(self._bytes, np.uint8, blocks * size, self._data + offset)
        return np.ascontiguousarray(dequantise(raw.reshape(blocks, size)).reshape(shape), dtype=np.float32)
