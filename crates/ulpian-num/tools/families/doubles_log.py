"""Constants of the fast paths through doubles that are built on logarithms."""
import mpmath as mp

from families.log import LN2, LN10, Z, Z_WIDER, atanh
from fits import const_double, const_doubles, error_line, float64, rounded

# s = u/(2 + u) at u = 1, squared, with a little room for what u = e^-|x| errs by.
Z_THIRD = mp.mpf(1) / 9 * mp.mpf("1.00001")
# The same where the number is a square, and k is taken from equal halves of the octaves of its root: within 2^±0.5077.
Z_SQUARE = mp.tanh(mp.mpf("0.5077") * LN2 / 2) ** 2
# r = x - k·ln2, squared, with a little room.
R2 = (LN2 / 2 * mp.mpf("1.0001")) ** 2


def series(name, factor, z, terms, doc):
    return const_doubles(name, lambda t: factor * atanh(t), lambda t: 1 / atanh(t) / factor, 0, z, terms, doc)


def tanh_half(w):
    """tanh(r/2)/r at w = r²."""
    if w < mp.mpf(10) ** -25:
        return mp.mpf(1) / 2 - w / 24
    r = mp.sqrt(w)
    return mp.tanh(r / 2) / r


def exp_halves():
    """C and D of e^r = (C + r·D)/(C - r·D), in r²: D - C·tanh(r/2)/r fitted to 0, C beginning with 1."""
    n = 40
    ws = [R2 / 2 * (1 + mp.cos(mp.pi * (2 * i + 1) / (2 * n))) for i in range(n)]
    a, b = mp.matrix(n, 4), mp.matrix(n, 1)
    for i, w in enumerate(ws):
        t = tanh_half(w)
        for j, v in enumerate((1, w, -t * w, -t * w**2)):
            a[i, j] = v * mp.sqrt(w)
        b[i] = t * mp.sqrt(w)
    d0, d1, c1, c2 = (rounded(v, 53) for v in mp.lu_solve(a, b))

    def off(r):
        c, d = 1 + r**2 * (c1 + r**2 * c2), d0 + r**2 * d1
        return abs((c + r * d) / (c - r * d) / mp.exp(r) - 1)

    err = mp.log(max(off(mp.sqrt(R2) * (2 * i + 1) / 1201) for i in range(600)), 2)
    text = lambda vs: ", ".join(map(float64, vs))
    yield f"/// C of e^r = (C + r·D)/(C - r·D) for |r| <= ln(2)/2, in r².\n{error_line(err)}pub const EXP_EVEN: [f64; 3] = [{text([mp.mpf(1), c1, c2])}];\n"
    yield f"/// D of it.\npub const EXP_ODD: [f64; 2] = [{text([d0, d1])}];\n"


def items():
    yield series("LOG", 2, Z, 6, "2·atanh(s)/s in s², for |s| <= (√2 - 1)/(√2 + 1), relative.")
    yield series("LOG2", 2 / LN2, Z, 6, "2·log2(e)·atanh(s)/s.")
    yield series("LOG10", 2 / LN10, Z, 6, "2·log10(e)·atanh(s)/s.")
    yield series("ASINH", 1, Z_SQUARE, 6, "atanh(s)/s for |s| up to 0.1743.")
    yield series("ATANH", 1, Z_WIDER, 6, "atanh(s)/s for |s| up to 0.2.")
    yield series("LOG1P", 2, Z_THIRD, 8, "2·atanh(s)/s for |s| <= 1/3.")
    yield const_double("LN_2", LN2, "ln(2).")
    yield const_double("LOG10_2", LN2 / LN10, "log10(2).")
    yield const_double("HALF_LN_2", LN2 / 2, "ln(2)/2.")
    yield from exp_halves()
    inverse, itself = lambda x: 1 / x, lambda x: x
    yield const_doubles("RECIPROCAL_NEAR_2", inverse, itself, mp.mpf("1.703"), mp.mpf("2.422"), 3, "1/x from 1.703 to 2.422, relative.")
