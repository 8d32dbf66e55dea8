"""Constants of expm1, and of the hyperbolic functions and activations made of it."""
import mpmath as mp

from fits import const_fixed_poly, const_pair, const_pairs_and_singles, const_wide, float32, rounded, single

EDGE = mp.log(2) / 2 * mp.mpf("1.0001")
SCALE = mp.mpf("1.0507009873554804934193349852946")
ALPHA = mp.mpf("1.6732632423543772848170429916717")
CUBE = mp.mpf("0.044715")
SLOPE = 2 * mp.sqrt(2 / mp.pi)


def first(r):
    """(e^r - 1)/r."""
    return mp.expm1(r) / r if r != 0 else mp.mpf(1)


def second(r):
    """(e^r - 1 - r)/r²."""
    if abs(r) < mp.mpf(10) ** -12:
        return mp.mpf(1) / 2 + r / 6 + r * r / 24 + r**3 / 120
    return (mp.expm1(r) - r) / (r * r)


def items():
    one = lambda t: 1
    yield const_pairs_and_singles(
        "EXPM1", first, one, -EDGE, EDGE, 5, 4, "(e^r - 1)/r for |r| <= ln(2)/2, error relative to 1.", leading=[1], plain=1,
    )
    yield const_fixed_poly("EXPM1_FIXED", second, one, -EDGE, EDGE, 14, "(e^r - 1 - r)/r² for |r| <= ln(2)/2, in units of 2^-61.")
    yield const_wide("LN_2_WIDE", mp.log(2), "ln(2).")
    yield const_pair("SELU_SCALE", SCALE, "The slope of selu above 0.")
    yield const_pair("SELU_SCALE_ALPHA", SCALE * ALPHA, "Minus the limit of selu at minus infinity.")
    yield const_wide("SELU_SCALE_WIDE", SCALE, "The same.")
    yield const_wide("SELU_SCALE_ALPHA_WIDE", SCALE * ALPHA, "The same.")
    high = rounded(SLOPE, 21)
    yield (
        "/// 2√(2/π), the first part a multiple of the unit of any float below 16.\n"
        f"pub const GELU_SLOPE: (f32, f32) = ({float32(high)}, {float32(single(SLOPE - high))});\n"
    )
    yield const_pair("GELU_CUBE", SLOPE * CUBE, "2√(2/π) · 0.044715.")
    yield const_wide("GELU_SLOPE_WIDE", SLOPE, "The same.")
    yield const_wide("GELU_CUBE_WIDE", SLOPE * CUBE, "The same.")
    for name, x in (("SLOPE", SLOPE), ("CUBE", SLOPE * CUBE)):
        yield const_wide(f"GELU_{name}_REST_WIDE", x - rounded(x, 64), f"What `GELU_{name}_WIDE` leaves out.")
