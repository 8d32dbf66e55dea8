#!/usr/bin/env python3
"""16-bit inputs on which narrowing the correctly rounded f32 result does not give the correctly rounded 16-bit one.

    pip install numpy gmpy2
    cargo build --release -p ulpian-verify --example truth_values
    python3 crates/ulpian-verify/tools/half_way.py TRUTH_VALUES > crates/ulpian-verify/data/half_way.txt

There the f32 result lies exactly half-way between two 16-bit numbers, which hides on which side the exact value is.
By the truth alone, of both 16-bit types and both subnormal modes: a line `FUNCTION DTYPE MODE INPUT...` in hexadecimal.
"""

import subprocess
import sys

import numpy as np

import check_truth

FIELDS = np.dtype([("right", "<u4"), ("filter", "<f8"), ("margin", "<u8"), ("precise", "<u4")])


def results(program, name, words, fmt, mode):
    data = np.repeat(words, 2).tobytes()
    out = subprocess.run([program, name, fmt, mode, "quick"], input=data, capture_output=True, check=True).stdout
    return np.frombuffer(out, dtype=FIELDS)["right"]


def narrowed(bits, fmt):
    bits = bits.astype(np.uint32)
    if fmt == "f16":
        with np.errstate(all="ignore"):
            half = bits.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)
        return np.where((half & 0x7FFF) > 0x7C00, 0x7E00, half)
    near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, near)


def main():
    print("# Inputs whose f32 result is correctly rounded and half-way between two 16-bit numbers, so that narrowing it")
    print("# takes the wrong one. made by: crates/ulpian-verify/tools/half_way.py")
    for name in check_truth.ONE:
        for fmt in ("f16", "bf16"):
            words = np.array([check_truth.widen(b, fmt) for b in range(65536)], dtype="<u4")
            for mode in ("flush", "preserve"):
                once = results(sys.argv[1], name, words, fmt, mode)
                twice = narrowed(results(sys.argv[1], name, words, "f32", mode), fmt)
                at = np.flatnonzero(once != twice)
                if len(at):
                    print(name, fmt, mode, *(f"{i:04x}" for i in at))


if __name__ == "__main__":
    main()
