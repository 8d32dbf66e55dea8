"""Constants of the logarithms and what is built on them."""
import mpmath as mp

from fits import const_fixed_poly, const_wide

LN2 = mp.log(2)
# s = (m - 1)/(m + 1) at m = sqrt(2), squared, with a little room.
Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.00001")


def atanh_rest(z):
    """(atanh(s)/s - 1)/z at z = s²."""
    if z < mp.mpf(10) ** -20:
        return mp.mpf(1) / 3 + z / 5
    s = mp.sqrt(z)
    return (mp.atanh(s) / s - 1) / z


def items():
    yield const_wide("LN_2_WIDE", LN2, "ln(2).")
    yield const_wide("LOG2_E_WIDE", 1 / LN2, "log2(e).")
    yield const_wide("LOG10_2_WIDE", LN2 / mp.log(10), "log10(2).")
    yield const_wide("LOG10_E_WIDE", 1 / mp.log(10), "log10(e).")
    yield const_fixed_poly(
        "ATANH_FIXED", lambda y: atanh_rest(y / 32), lambda y: y / 32, 0, 32 * Z, 11,
        "(atanh(s)/s - 1)/s² in 32·s², for |s| <= (√2 - 1)/(√2 + 1), in units of 2^-61.",
    )
