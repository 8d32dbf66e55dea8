"""Constants of erf, erfc and the erf form of gelu."""
import mpmath as mp

from fits import const_fixed_poly, const_pairs_and_singles, const_short_pairs, const_wide, error_line, fit, float32

# Where erf rounds to 1: erfc is 2^-25 there.
ONE = mp.findroot(lambda x: mp.erfc(x) - mp.mpf(2) ** -25, 3.9)
ZERO_POINT = mp.mpf(2) ** -60


def scaled_tail(x):
    """e^(x²)·erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


def exponent(x):
    """-log2(erfc(x))/x."""
    if x < ZERO_POINT:
        return 2 / mp.sqrt(mp.pi) / mp.log(2)
    return -mp.log(mp.erfc(x), 2) / x


def exponent_weight(x):
    """Relative error of erf for an error of 1 in `exponent`."""
    if x < ZERO_POINT:
        return 1 / exponent(mp.mpf(0))
    return x * mp.erfc(x) * mp.log(2) / mp.erf(x)


def exp2_slope(t):
    """(2^t - 1)/t."""
    return mp.log(2) if abs(t) < ZERO_POINT else mp.expm1(t * mp.log(2)) / t


def tail(k):
    """e^(x²)·erfc(x)·(x + k) at t = (x - k)/(x + k)."""

    def f(t):
        x = k * (1 + t) / (1 - t)
        return scaled_tail(x) * (x + k)

    return f


def ratio(t):
    """erf(x)/x at t = x²."""
    if t < ZERO_POINT:
        return 2 / mp.sqrt(mp.pi) * (1 - t / 3)
    return mp.erf(mp.sqrt(t)) / mp.sqrt(t)


# The exponent's polynomial is about this point: its terms fall fastest where erf is far from 1.
CENTRE = mp.mpf("0.75")
# Points for which no step of the pairs cancels, so that all its differences are exact.
K = mp.mpf("3.3125")
K_NORMAL = mp.mpf("4.6875")
K_WIDE = mp.mpf("3.5")


def items():
    yield const_pairs_and_singles(
        "ERF", lambda v: exponent(v + CENTRE), lambda v: exponent_weight(v + CENTRE), -CENTRE, ONE - CENTRE, 5, 10,
        "-log2(erfc(x))/x in x - 3/4 from 0 to where erf rounds to 1, weighted for erf's relative error.",
    )
    c, err = fit(lambda x: mp.diff(exponent, x), lambda x: 1, mp.mpf("1e-3"), mp.mpf("0.376"), ["single"] * 3)
    line = ", ".join(map(float32, c))
    yield f"/// Its derivative in x up to 3/8.\n{error_line(err)}pub const ERF_SLOPE: [f32; 3] = [{line}];\n"
    edge = mp.mpf("0.50001")
    yield const_pairs_and_singles(
        "EXP2_SLOPE", exp2_slope, lambda t: 1 / mp.log(2), -edge, edge, 4, 5, "(2^t - 1)/t for |t| <= 1/2.",
    )
    yield const_short_pairs(
        "ERFC", tail(K), lambda t: 1 / tail(K)(t), -1, (mp.mpf("10.1") - K) / (mp.mpf("10.1") + K), 11, 4,
        "e^(x²)·erfc(x)·(x + K) in (x - K)/(x + K), K = 3.3125, for x from 0 to 10.1; first halves of 20 bits.",
    )
    root = mp.sqrt(2)
    inner = tail(K_NORMAL / root)
    half = lambda t: inner(t) * root / 2
    yield const_short_pairs(
        "GELU", half, lambda t: 1 / half(t), -1, (mp.mpf("14.4") - K_NORMAL) / (mp.mpf("14.4") + K_NORMAL), 11, 4,
        "e^(x²/2)·erfc(x/√2)/2·(x + K) in (x - K)/(x + K), K = 4.6875, for x from 0 to 14.4; first halves of 20 bits.",
    )
    yield const_fixed_poly(
        "TAIL_FIXED", tail(K_WIDE), lambda t: 1, -1, (mp.mpf(28) - K_WIDE) / (28 + K_WIDE), 27,
        "e^(x²)·erfc(x)·(x + 3.5) in (x - 3.5)/(x + 3.5) for x from 0 to 28, in units of 2^-61.",
    )
    yield const_fixed_poly("RATIO_FIXED", ratio, lambda t: 1, 0, 1, 14, "erf(x)/x in x² for |x| <= 1, in units of 2^-61.")
    yield const_wide("K_ROOT_2_WIDE", K_WIDE * root, "3.5·√2.")
    yield const_wide("ROOT_2_WIDE", root, "√2.")

