#!/usr/bin/env python3
"""Where PyTorch's 16-bit functions are not correctly rounded, input by input, and what is right.

    pip install numpy gmpy2
    cargo build --release -p ulpian-verify --example truth_values
    python3 crates/ulpian-verify/tools/torch_agreement.py TRUTH_VALUES GOLDEN.npz OUT.txt

GOLDEN.npz holds PyTorch's results for all 65,536 inputs, key FUNCTION_DTYPE_DEVICE, dtypes float16 and bfloat16, devices cpu and
cuda, as uint16 patterns. The right results come from TRUTH_VALUES with subnormals kept, as PyTorch keeps them; each one on which PyTorch differs
is computed by MPFR again, and the script fails if the two disagree. NaNs count as one value.

OUT.txt: a line `FUNCTION DTYPE DEVICE COUNT` for each set, then its differences, `INPUT:TORCH:RIGHT` in hexadecimal, ordered by
input.
"""

import struct
import subprocess
import sys

import numpy as np
from gmpy2 import mpfr

import check_truth as mpfr_functions

NAMES = {"reciprocal": "recip"}
# No function of PyTorch but an expression of three operations, each of which rounds to 16 bits.
EXPRESSIONS = {"quick_gelu"}


def right_results(program, name, fmt):
    words = np.array([mpfr_functions.widen(b, fmt) for b in range(65536)], dtype="<u4")
    data = np.repeat(words, 2).tobytes()
    out = subprocess.run([program, name, fmt, "preserve", "quick"], input=data, capture_output=True, check=True).stdout
    fields = np.dtype([("right", "<u4"), ("filter", "<f8"), ("margin", "<u8"), ("precise", "<u4")])
    return np.frombuffer(out, dtype=fields)["right"].astype(np.uint32)


def canonical(bits, fmt):
    infinity = {"f16": 0x7C00, "bf16": 0x7F80}[fmt]
    bits = bits.astype(np.uint32)
    return np.where((bits & 0x7FFF) > infinity, mpfr_functions.nan_bits(fmt), bits)


def by_mpfr(name, fmt, pattern):
    x = mpfr(mpfr_functions.f32(mpfr_functions.widen(pattern, fmt)))
    try:
        return mpfr_functions.rounded(mpfr_functions.ONE[name](x), fmt, True)
    except ZeroDivisionError:
        return None


def main():
    program, golden, out = sys.argv[1:4]
    sets = np.load(golden)
    lines, total, inputs = [], 0, 0
    for key in sorted(sets.files):
        function, dtype, device = key.rsplit("_", 2)
        if function in EXPRESSIONS:
            continue
        fmt = {"float16": "f16", "bfloat16": "bf16"}[dtype]
        name = NAMES.get(function, function)
        right = right_results(program, name, fmt)
        torch = canonical(sets[key], fmt)
        at = np.flatnonzero(torch != right)
        for i in at:
            said = by_mpfr(name, fmt, int(i))
            if said is not None and said != right[i]:
                sys.exit(f"{key} {i:04x}: the truth is {right[i]:04x}, MPFR has {said:04x}")
        lines.append(f"{name} {fmt} {device} {len(at)}")
        lines += [f"{i:04x}:{torch[i]:04x}:{right[i]:04x}" for i in at]
        total, inputs = total + len(at), inputs + 65536
        print(f"{name:12} {fmt:5} {device:5} {len(at):6} of 65536 differ", flush=True)
    head = [
        "# PyTorch's results for 16-bit inputs that are not the nearest ones, and the nearest ones (MPFR's).",
        "# ulpian is right on every line: tests/functions.rs holds it to the last column.",
        "# made by: crates/ulpian-verify/tools/torch_agreement.py, which says what the columns are",
        f"# {total} of {inputs} results differ",
    ]
    with open(out, "w") as f:
        f.write("\n".join(head + lines) + "\n")


if __name__ == "__main__":
    main()
