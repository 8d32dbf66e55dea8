"""Fits and formats for the constants of src/functions/constants/. Needs mpmath.

A fit is weighted least squares at Chebyshev nodes in 60 digits, which for smooth functions is within a small factor of
minimax. Coefficients are rounded from the lowest up, and the rest is fitted again after each, so that the rounding of
the low ones is compensated.
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def rounded(x, bits):
    """x to `bits` significant bits, nearest."""
    if x == 0:
        return mp.mpf(0)
    e = mp.floor(mp.log(abs(x), 2))
    s = mp.mpf(2) ** (bits - 1 - e)
    return mp.nint(x * s) / s


def single(x):
    return rounded(x, 24)


def pair(x):
    """x as the unevaluated sum of two floats, the second the rounded rest of the first."""
    hi = single(x)
    return hi, single(x - hi)


def fixed(x, unit):
    """x in units of 2^-unit."""
    return int(mp.nint(mp.mpf(x) * mp.mpf(2) ** unit))


def fit(f, weight, a, b, forms):
    """Coefficients of f over [a, b], lowest first, and log2 of the greatest |error|·weight.

    `forms` has one entry for each: "pair", "single", "double", ("fixed", unit), or a number that fixes the coefficient. Values
    come back as exact numbers (a pair as its sum).
    """
    a, b = mp.mpf(a), mp.mpf(b)
    n = 5 * (len(forms) + 1)
    xs = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    xs = [x for x in xs if x != 0]
    rest = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    done = []
    for i, form in enumerate(forms):
        if isinstance(form, (int, mp.mpf)):
            c = mp.mpf(form)
        else:
            rows, rhs = mp.matrix(len(xs), len(forms) - i), mp.matrix(len(xs), 1)
            for j, x in enumerate(xs):
                rhs[j] = rest[j] * ws[j]
                p = x**i * ws[j]
                for k in range(len(forms) - i):
                    rows[j, k] = p
                    p *= x
            c = mp.lu_solve(rows, rhs)[0]
            if form == "pair":
                c = sum(pair(c))
            elif form == "single":
                c = single(c)
            elif form == "double":
                c = rounded(c, 53)
            else:
                c = fixed(c, form[1]) / mp.mpf(2) ** form[1]
        done.append(c)
        rest = [r - c * x**i for r, x in zip(rest, xs)]
    steps = [a + (b - a) * (2 * i + 1) / 1201 for i in range(600)]
    err = max(abs(mp.polyval(done[::-1], x) - f(x)) * abs(weight(x)) for x in steps)
    return done, mp.log(err, 2)


def float32(x):
    """The shortest decimal that reads back as the float x."""
    as_single = lambda v: struct.unpack("f", struct.pack("f", v))[0]
    if x == 0:
        return "0.0"
    assert mp.mpf(as_single(float(x))) == x, x
    digits = next(d for n in range(1, 12) if as_single(float(d := "%.*g" % (n, x))) == x)
    text = digits if "e" in digits else digits if "." in digits else digits + ".0"
    return text.replace("e-0", "e-").replace("e+", "e")


def float64(x):
    """The shortest decimal that reads back as the double x."""
    assert mp.mpf(float(x)) == x, x
    text = repr(float(x))
    return text.replace("e-0", "e-") if "e" in text else text


def error_line(err):
    return f"/// Greatest weighted error of the fit 2^{mp.nstr(err, 4)}.\n"


def const_single(name, x, doc):
    return f"/// {doc}\npub const {name}: f32 = {float32(single(x))};\n"


def const_pair(name, x, doc):
    hi, lo = pair(x)
    return f"/// {doc}\npub const {name}: (f32, f32) = ({float32(hi)}, {float32(lo)});\n"


def const_split(name, x, first_bits, second_bits, doc):
    """x as three floats, the first two of the given bits."""
    a = rounded(x, first_bits)
    b = rounded(x - a, second_bits)
    c = single(x - a - b)
    return f"/// {doc}\npub const {name}: [f32; 3] = [{float32(a)}, {float32(b)}, {float32(c)}];\n"


def const_wide(name, x, doc):
    """(negative, exponent, significand) for `Wide::lit`."""
    e = int(mp.floor(mp.log(abs(x), 2)))
    m = int(mp.nint(abs(x) * mp.mpf(2) ** (63 - e)))
    if m == 1 << 64:
        e, m = e + 1, m // 2
    return f"/// {doc}\npub const {name}: (bool, i32, u64) = ({str(x < 0).lower()}, {e}, 0x{m:016x});\n"


def const_words(name, x, unit, words, doc):
    """x in units of 2^-unit as 32-bit words, lowest first."""
    v = int(mp.floor(mp.mpf(x) * mp.mpf(2) ** unit))
    ws = [(v >> (32 * i)) & 0xFFFFFFFF for i in range(words)]
    assert v >> (32 * words) == 0
    text = ", ".join(f"0x{w:08x}" for w in ws)
    return f"/// {doc}\npub const {name}: [u32; {words}] = [{text}];\n"


def const_pairs_and_singles(name, f, weight, a, b, pairs, singles, doc, leading=(), plain=0):
    """A polynomial whose first coefficients are pairs and whose others are floats: `NAME_PAIRS`, `NAME_SINGLES`.

    `leading` fixes the first coefficients at given values (each becomes a pair); `plain` of the last pairs are floats
    with a second half of zero.
    """
    forms = list(leading) + ["pair"] * (pairs - plain - len(leading)) + ["single"] * (plain + singles)
    c, err = fit(f, weight, a, b, forms)
    out = f"/// {doc}\n" + error_line(err)
    ps = ", ".join("({}, {})".format(*map(float32, pair(x))) for x in c[:pairs])
    out += f"pub const {name}_PAIRS: [(f32, f32); {pairs}] = [{ps}];\n"
    out += f"/// The rest of it.\npub const {name}_SINGLES: [f32; {singles}] = ["
    return out + ", ".join(map(float32, c[pairs:])) + "];\n"


def const_short_pairs(name, f, weight, a, b, pairs, singles, doc):
    """Like `const_pairs_and_singles`, first halves of 20 bits: exact differences where terms are large."""
    c, err = fit(f, weight, a, b, ["pair"] * pairs + ["single"] * singles)
    halves = [(rounded(x, 20), single(x - rounded(x, 20))) for x in c[:pairs]]
    ps = ", ".join("({}, {})".format(*map(float32, p)) for p in halves)
    out = f"/// {doc}\n{error_line(err)}pub const {name}_PAIRS: [(f32, f32); {pairs}] = [{ps}];\n"
    out += f"/// The rest of it.\npub const {name}_SINGLES: [f32; {singles}] = ["
    return out + ", ".join(map(float32, c[pairs:])) + "];\n"


def const_fixed_poly(name, f, weight, a, b, terms, doc, unit=61):
    """A polynomial in units of 2^-61 for `poly_fixed`."""
    c, err = fit(f, weight, a, b, [("fixed", unit)] * terms)
    out = f"/// {doc}\n" + error_line(err)
    vs = ", ".join(str(fixed(x, unit)) for x in c)
    return out + f"pub const {name}: [i64; {terms}] = [{vs}];\n"


def const_double(name, x, doc):
    return f"/// {doc}\npub const {name}: f64 = {float64(rounded(x, 53))};\n"


def const_doubles(name, f, weight, a, b, terms, doc, leading=()):
    """A polynomial with doubles as coefficients, the first of which `leading` fixes."""
    c, err = fit(f, weight, a, b, list(leading) + ["double"] * (terms - len(leading)))
    vs = ", ".join(map(float64, c))
    return f"/// {doc}\n{error_line(err)}pub const {name}: [f64; {terms}] = [{vs}];\n"
