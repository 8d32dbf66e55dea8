#!/usr/bin/env python3
"""Prints the polynomial coefficients and split constants of src/functions/, with the error of each fit.

Needs mpmath. A fit is weighted least squares at Chebyshev nodes in 120 digits, which for these smooth functions is
within a small factor of minimax; each coefficient is rounded to the working precision from the lowest up and the rest
is fitted again, so the rounding of the low ones is compensated. Run: python3 coefficients.py
"""
import struct
from decimal import Decimal

import mpmath as mp

mp.mp.dps = 120


def rounded(x, bits):
    """x to `bits` significant bits, nearest."""
    if x == 0:
        return mp.mpf(0)
    e = mp.floor(mp.log(abs(x), 2))
    s = mp.mpf(2) ** (bits - 1 - e)
    return mp.nint(x * s) / s


def fit(f, weight, a, b, degree, bits):
    """Coefficients, lowest first, and log2 of the greatest weighted error."""
    a, b = mp.mpf(a), mp.mpf(b)
    n = 6 * (degree + 1)
    xs = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    xs = [x for x in xs if x != 0]
    ys = [f(x) for x in xs]
    # Chebyshev density makes plain least squares nearly minimax.
    ws = [weight(x) for x in xs]
    fixed = []
    for i in range(degree + 1):
        rows = mp.matrix(len(xs), degree + 1 - i)
        rhs = mp.matrix(len(xs), 1)
        for j, x in enumerate(xs):
            rest = ys[j] - sum(c * x**p for p, c in enumerate(fixed))
            rhs[j] = rest * ws[j]
            for p in range(i, degree + 1):
                rows[j, p - i] = x**p * ws[j]
        c = mp.lu_solve(rows, rhs)
        fixed.append(rounded(c[0], bits))
    err = max(
        abs(sum(c * x**p for p, c in enumerate(fixed)) - f(x)) * abs(weight(x))
        for x in [a + (b - a) * (2 * i + 1) / 2001 for i in range(1000)]
    )
    return fixed, mp.log(err, 2)


def shortest(x, ty):
    """The shortest decimal that reads back as x."""
    single = lambda v: struct.unpack("f", struct.pack("f", v))[0]
    digits = repr(float(x))
    if ty == "f32":
        digits = next(d for n in range(1, 12) if single(float(d := "%.*g" % (n, x))) == x)
    text = format(Decimal(digits), "f")
    return text if "." in text else text + ".0"


def show(name, f, weight, a, b, degree, bits):
    cs, err = fit(f, weight, a, b, degree, bits)
    ty = "f32" if bits == 24 else "f64"
    print(f"// {name}: degree {degree}, weighted error 2^{mp.nstr(err, 5)}")
    print(f"const {name}: [{ty}; {degree + 1}] = [")
    for c in cs:
        print(f"    {shortest(c, ty)},")
    print("];")


def split(name, x, bits, parts):
    """x as an unevaluated sum of parts, with the given bits each."""
    ty = "f32" if bits == 24 else "f64"
    for i, p in enumerate(parts):
        hi = rounded(x, p)
        print(f"const {name}_{i}: {ty} = {shortest(hi, ty)};")
        x -= hi


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
LO, HI = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1


def expq(r):
    return (mp.expm1(r) - r) / r**2


def logq(f):
    return (mp.log1p(f) - f + f * f / 2) / f**3


def log_s(z):
    """log((1+s)/(1-s)) = 2s + s·R(s²), with R(z) = z·L(z)."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def sinq(z):
    t = mp.sqrt(z)
    return (mp.sin(mp.pi * t) - mp.pi * t) / (t * z)


def cosq(z):
    t = mp.sqrt(z)
    return (mp.cos(mp.pi * t) - 1 + mp.pi**2 / 2 * z) / (z * z)


if __name__ == "__main__":
    split("LN2_F32", mp.log(2), 24, [24, 24])
    split("LN2_SHORT_F32", mp.log(2), 24, [15, 24])
    split("LOG2E_F32", 1 / mp.log(2), 24, [24])
    split("LN2_F64", mp.log(2), 53, [33, 53])
    split("LOG2E_F64", 1 / mp.log(2), 53, [53])
    split("PI_F64", mp.pi, 53, [53, 53])
    split("HALF_PI_SQUARED_F64", mp.pi**2 / 2, 53, [53, 53])
    show("EXP_F32", expq, lambda r: r, -HALF_LN2, HALF_LN2, 5, 24)
    show("LOG_F32", logq, lambda f: f * f, LO, HI, 8, 24)
    show("EXP_F64", expq, lambda r: r, -HALF_LN2, HALF_LN2, 10, 53)
    smax = (HI / (2 + HI)) ** 2
    show("LOG_F64", log_s, lambda z: z, 0, smax, 7, 53)
    show("SIN_F64", sinq, lambda z: z, 0, mp.mpf(1) / 16, 7, 53)
    show("COS_F64", cosq, lambda z: z * z, 0, mp.mpf(1) / 16, 7, 53)
