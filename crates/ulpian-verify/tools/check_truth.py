#!/usr/bin/env python3
"""Checks the truth that `ulpian prove` uses against MPFR.

    pip install gmpy2
    cargo build --release -p ulpian-verify --example truth_values
    python3 crates/ulpian-verify/tools/check_truth.py TRUTH_VALUES [--count N] [FUNCTION ...]

TRUTH_VALUES is the program just built. For each function: random patterns, structured ones (neighbours of powers of
two, of special points, subnormals), f32, f16 and bf16, both subnormal modes. Compared are the result, the
filter's margin (how much of it was used, in units of 2^(exponent-52)) and the result of arbitrary precision.
MPFR's own functions are used where it has them, else formulas at 500 bits over them.
"""

import argparse
import random
import struct
import subprocess
import sys

import gmpy2
from gmpy2 import mpfr

PREC = 500
gmpy2.set_context(gmpy2.context(precision=PREC, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()))
INF, NAN = mpfr("inf"), mpfr("nan")
PI = gmpy2.const_pi()
SELU_SCALE = mpfr("1.0507009873554804934193349852946")
SELU_ALPHA = mpfr("1.6732632423543772848170429916717")


def sigmoid(x):
    return 1 / (1 + gmpy2.exp(-x))


def softplus(x):
    return x if x > 10000 else gmpy2.log1p(gmpy2.exp(x))


def gate(factor):
    """x times a gate; PyTorch has NaN at minus infinity."""
    return lambda x: NAN if x == -INF else (x if x == INF else x * factor(x))


def sinpi(x):
    if not gmpy2.is_finite(x):
        return NAN
    if x == gmpy2.rint(x):
        return gmpy2.copy_sign(mpfr(0), x)
    r = gmpy2.fmod(x, mpfr(2))
    return gmpy2.sin(PI * r)


def cospi(x):
    if not gmpy2.is_finite(x):
        return NAN
    r = abs(gmpy2.fmod(x, mpfr(2)))
    if r in (mpfr("0.5"), mpfr("1.5")):
        return mpfr(0)
    # cos(pi r) through the sine of the distance to the nearest zero.
    return gmpy2.sin(PI * (mpfr("0.5") - r)) if r <= 1 else gmpy2.sin(PI * (r - mpfr("1.5")))


def erfinv(x):
    a = abs(x)
    if a > 1 or gmpy2.is_nan(x):
        return NAN
    if a == 1:
        return gmpy2.copy_sign(INF, x)
    if a == 0:
        return x
    # Bisection to 60 bits, then Newton: another method than the one under test.
    if a < mpfr("1e-6"):
        y = a * gmpy2.sqrt(PI) / 2
    else:
        low, high = mpfr(0), mpfr(7)
        for _ in range(64):
            middle = (low + high) / 2
            low, high = (middle, high) if gmpy2.erf(middle) < a else (low, middle)
        y = low
    for _ in range(5):
        y -= (gmpy2.erf(y) - a) * gmpy2.sqrt(PI) / 2 * gmpy2.exp(y * y)
    return gmpy2.copy_sign(y, x)


def lgamma(x):
    if gmpy2.is_infinite(x) or (x <= 0 and x == gmpy2.rint(x)):
        return INF
    return gmpy2.lgamma(x)[0]


def digamma(x):
    if x == 0:
        return gmpy2.copy_sign(INF, -x)
    if gmpy2.is_finite(x) and x < 0 and x == gmpy2.rint(x):
        return NAN
    if x == -INF:
        return NAN
    return gmpy2.digamma(x)


def gelu_tanh(x):
    u = gmpy2.sqrt(2 / PI) * (x + mpfr("0.044715") * x**3)
    return sigmoid(2 * u)


def mish(x):
    e = gmpy2.exp(x)
    n = e * (e + 2)
    return mpfr(1) if gmpy2.is_infinite(n) else n / (n + 2)


def log_add_exp(x, y):
    if gmpy2.is_nan(x) or gmpy2.is_nan(y):
        return NAN
    most = max(x, y)
    if gmpy2.is_infinite(most):
        return most
    return most + gmpy2.log1p(gmpy2.exp(min(x, y) - most))


def xlogy(x, y):
    if gmpy2.is_nan(y):
        return NAN
    return mpfr(0) if x == 0 else (NAN if y < 0 else x * gmpy2.log(y))


def remainder(x, y):
    r = gmpy2.fmod(x, y)
    if gmpy2.is_nan(r) or r == 0 or (r < 0) == (y < 0):
        return r
    return r + y


def selu(x):
    return SELU_SCALE * x if x > 0 else SELU_SCALE * SELU_ALPHA * gmpy2.expm1(x)


def log_sigmoid(x):
    return mpfr(0) if x == INF else -softplus(-x)


ELU = lambda x: x if x > 0 else gmpy2.expm1(x)
ONE = {
    "recip": lambda x: 1 / x,
    "sqrt": gmpy2.sqrt,
    "rsqrt": lambda x: gmpy2.copy_sign(INF, x) if x == 0 else gmpy2.rec_sqrt(x),
    "cbrt": gmpy2.cbrt,
    "exp": gmpy2.exp,
    "exp2": gmpy2.exp2,
    "exp10": gmpy2.exp10,
    "expm1": gmpy2.expm1,
    "log": gmpy2.log,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "log1p": gmpy2.log1p,
    "sin": gmpy2.sin,
    "cos": gmpy2.cos,
    "tan": gmpy2.tan,
    "sinpi": sinpi,
    "cospi": cospi,
    "asin": gmpy2.asin,
    "acos": gmpy2.acos,
    "atan": gmpy2.atan,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "tanh": gmpy2.tanh,
    "asinh": gmpy2.asinh,
    "acosh": gmpy2.acosh,
    "atanh": gmpy2.atanh,
    "erf": gmpy2.erf,
    "erfc": gmpy2.erfc,
    "erfinv": erfinv,
    "lgamma": lgamma,
    "digamma": digamma,
    "sigmoid": sigmoid,
    "log_sigmoid": log_sigmoid,
    "softplus": softplus,
    "silu": gate(sigmoid),
    "gelu": gate(lambda x: gmpy2.erfc(-x / gmpy2.sqrt(mpfr(2))) / 2),
    "gelu_tanh": gate(gelu_tanh),
    "quick_gelu": gate(lambda x: sigmoid(mpfr("1.702") * x)),
    "mish": gate(mish),
    "elu": ELU,
    "celu": ELU,
    "selu": selu,
}
TWO = {
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "atan2": gmpy2.atan2,
    "hypot": gmpy2.hypot,
    "fmod": lambda x, y: gmpy2.fmod(x, y),
    "remainder": remainder,
    "logaddexp": log_add_exp,
    "xlogy": xlogy,
}
FORMATS = {"f32": (24, -126, 127), "f16": (11, -14, 15), "bf16": (8, -126, 127)}
T = mpfr(2) ** -126 * (1 - mpfr(2) ** -25)


def f32(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def widen(bits, fmt):
    if fmt == "f32":
        return bits
    if fmt == "bf16":
        return bits << 16
    value = struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0]


def nan_bits(fmt):
    return {"f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0}[fmt]


def rounded(v, fmt, keep):
    """v to nearest even in the format, in integers; the flush first, as the contract says."""
    digits, least, most = FORMATS[fmt]
    width = 32 if fmt == "f32" else 16
    if gmpy2.is_nan(v):
        return nan_bits(fmt)
    sign = (1 << (width - 1)) if gmpy2.is_signed(v) else 0
    infinity = (most - least + 2) << (digits - 1)
    if gmpy2.is_infinite(v):
        return sign | infinity
    a = abs(v)
    if a == 0 or (not keep and a < T):
        return sign
    bounded = keep or fmt != "f32"
    e = gmpy2.frexp(a)[0] - 1
    unit = max(e, least) - digits + 1 if bounded else e - digits + 1
    n = int(gmpy2.rint(mpfr(gmpy2.mul_2exp(a, -unit) if unit < 0 else gmpy2.div_2exp(a, unit))))
    if n >= 1 << digits:
        n, unit = n >> 1, unit + 1
    e = unit + digits - 1
    if n < 1 << (digits - 1):
        return sign | n
    if e > most:
        return sign | infinity
    if e < least:
        return sign
    return sign | ((e - least + 1) << (digits - 1)) | (n & ((1 << (digits - 1)) - 1))


def structured():
    points = []
    for e in range(0, 256, 3):
        for m in (0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF):
            points += [(e << 23) | m]
    for v in (0.5, 1, 1.4616321, 2, 3, 4, 10, 20, 88.7, 103.9, 709, 1.5, 2.5, 3.1415927, 1.5707964, 2.7182817):
        b = struct.unpack("<I", struct.pack("<f", v))[0]
        points += [b + d for d in range(-6, 7)]
    return points + [p | 0x80000000 for p in points]


def inputs(fmt, arity, count, rng):
    if fmt == "f32":
        base = structured()
        some = lambda: [rng.getrandbits(32) for _ in range(count)] + [
            # Exponents where functions are neither trivial nor out of range.
            (rng.getrandbits(1) << 31) | (rng.randrange(100, 136) << 23) | rng.getrandbits(23)
            for _ in range(count)
        ]
    else:
        base = []
        some = lambda: [rng.getrandbits(16) for _ in range(count)]
    if arity == 1:
        if fmt != "f32":
            return [(b, b) for b in range(65536)]
        return [(b, b) for b in base + some()]
    small = base[:: max(1, len(base) // 60)] + [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000] * (fmt == "f32")
    pairs = [(a, b) for a in small for b in small] + list(zip(some(), some()))
    if fmt == "f32":
        # Triples of Pythagoras, small whole numbers and quarters: exact results and ties.
        whole = lambda n: struct.unpack("<I", struct.pack("<f", n))[0]
        pairs += [(whole(a), whole(b)) for a in range(-12, 13) for b in range(-12, 13)]
        pairs += [(whole(a / 4), whole(b / 4)) for a in range(1, 26) for b in range(-9, 10)]
        for m in range(2, 90, 3):
            for n in range(1, m, 5):
                s = rng.randrange(1, 4096)
                if max(m * m, 2 * m * n) * s < 1 << 24:
                    pairs.append((whole((m * m - n * n) * s), whole(2 * m * n * s)))
        pairs += [(a, (a & 0x7FFFFFFF) ^ rng.getrandbits(6)) for a in some()[:count]]
    return pairs


def check(program, name, fmt, keep, count, rng, quick):
    arity = 1 if name in ONE else 2
    cases = inputs(fmt, arity, count, rng)
    words = [(widen(a, fmt), widen(b, fmt)) for a, b in cases]
    data = b"".join(struct.pack("<II", a & 0xFFFFFFFF, b & 0xFFFFFFFF) for a, b in words)
    mode = "preserve" if keep else "flush"
    out = subprocess.run([program, name, fmt, mode] + ["quick"] * quick, input=data, capture_output=True, check=True).stdout
    used, wrong = 0.0, 0
    for i, (a, b) in enumerate(words):
        right, value, margin, precise = struct.unpack_from("<IdQI", out, 24 * i)
        flush = lambda w: w & 0x80000000 if not keep and w & 0x7F800000 == 0 else w
        x, y = mpfr(f32(flush(a))), mpfr(f32(flush(b)))
        try:
            exact = ONE[name](x) if arity == 1 else TWO[name](x, y)
        except (ZeroDivisionError, gmpy2.RangeError):
            exact = None
        if exact is None:
            continue
        want = rounded(exact, fmt, keep)
        if right != want or precise not in (want, 0xFFFFFFFF):
            wrong += 1
            if wrong <= 5:
                print(
                    f"{name} {fmt} {mode}: {a:08x} {b:08x}: truth {right:08x}, precise {precise:08x}, "
                    f"MPFR {want:08x} ({float(exact):.17g}, filter {value:.17g}, margin {margin})"
                )
        if margin and gmpy2.is_finite(exact) and exact != 0 and 1e-300 < abs(exact) < mpfr("1e300"):
            unit = mpfr(2) ** (gmpy2.frexp(mpfr(value))[0] - 53)
            used = max(used, float(abs(exact - mpfr(value)) / unit) / margin)
    return len(words), wrong, used


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("functions", nargs="*")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--formats", default="f32,f16,bf16")
    parser.add_argument("--modes", default="flush,preserve")
    parser.add_argument("--quick", action="store_true", help="the results alone: no margins, no arbitrary precision")
    args = parser.parse_intermixed_args()
    failed = False
    for name in args.functions or list(ONE) + list(TWO):
        for fmt in args.formats.split(","):
            for keep in (mode == "preserve" for mode in args.modes.split(",")):
                rng = random.Random(f"{name} {fmt} {keep}")
                n, wrong, used = check(args.program, name, fmt, keep, args.count, rng, args.quick)
                mode = "preserve" if keep else "flush"
                print(f"{name:12} {fmt:5} {mode:8} {n:7} inputs {wrong:6} wrong, {used:.4f} of the margin used", flush=True)
                failed |= wrong > 0 or used > 0.5
    sys.exit(failed)


if __name__ == "__main__":
    main()
