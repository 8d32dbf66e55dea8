"""Constants of the logarithms and what is built on them."""
import mpmath as mp

from fits import const_fixed_poly, const_pairs_and_singles, const_wide, error_line, fit, float32, pair, rounded, single

LN2 = mp.log(2)
LN10 = mp.log(10)
# s = (m - 1)/(m + 1) at m = sqrt(2), squared, with a little room.
Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.00001")
# The same where m is only known to be within 2^±0.587 (atanh's estimate of the exponent).
Z_WIDER = mp.mpf("0.0402")


def atanh(z):
    """atanh(s)/s at z = s²."""
    if z < mp.mpf(10) ** -25:
        return 1 + z / 3
    s = mp.sqrt(z)
    return mp.atanh(s) / s


def atanh_slope(z):
    """The derivative of `atanh`."""
    if z < mp.mpf(10) ** -20:
        return mp.mpf(1) / 3 + 2 * z / 5
    s = mp.sqrt(z)
    return (s / (1 - z) - mp.atanh(s)) / (2 * s * z)


def atanh_rest(z):
    """(atanh(s)/s - 1)/z at z = s²."""
    if z < mp.mpf(10) ** -20:
        return mp.mpf(1) / 3 + z / 5
    return (atanh(z) - 1) / z


def series(name, factor, z, what):
    """`factor`·atanh(s)/s as a polynomial in s², and its derivative as a line."""
    first = sum(pair(factor))
    yield const_pairs_and_singles(
        name, lambda t: factor * atanh(t), lambda t: 1 / factor, 0, z, 3, 3,
        f"{what}atanh(s)/s in s², relative to its first coefficient.", leading=[first], plain=1,
    )
    c, err = fit(lambda t: factor * atanh_slope(t), lambda t: 1 / factor, 0, z, ["single", "single"])
    line = ", ".join(map(float32, c))
    yield f"/// Its derivative.\n{error_line(err)}pub const {name}_SLOPE: (f32, f32) = ({line});\n"


def octave(name, x, doc):
    """x in two parts, the first of 17 bits, so that its product with an exponent is exact."""
    high = rounded(x, 17)
    parts = ", ".join(map(float32, (high, single(x - high))))
    yield f"/// {doc}: the first part has 17 bits, so that its product with an exponent is exact.\npub const {name}: (f32, f32) = ({parts});\n"


def items():
    yield const_wide("LN_2_WIDE", LN2, "ln(2).")
    yield const_wide("LOG2_E_WIDE", 1 / LN2, "log2(e).")
    yield const_wide("LOG10_2_WIDE", LN2 / LN10, "log10(2).")
    yield const_wide("LOG10_E_WIDE", 1 / LN10, "log10(e).")
    yield const_fixed_poly(
        "ATANH_FIXED", lambda y: atanh_rest(y / 32), lambda y: y / 32, 0, 32 * Z, 11,
        "(atanh(s)/s - 1)/s² in 32·s², for |s| <= (√2 - 1)/(√2 + 1), in units of 2^-61.",
    )
    yield from octave("LN_2", LN2, "ln(2)")
    yield from octave("LOG10_2", LN2 / LN10, "log10(2)")
    yield from octave("HALF_LN_2", LN2 / 2, "ln(2)/2")
    yield from series("LOG", mp.mpf(2), Z, "2·")
    yield from series("LOG2", 2 / LN2, Z, "2·log2(e)·")
    yield from series("LOG10", 2 / LN10, Z, "2·log10(e)·")
    yield from series("ATANH", mp.mpf(1), Z_WIDER, "")
