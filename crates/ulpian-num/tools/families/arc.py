"""Constants of atan, asin, acos and atan2."""
import mpmath as mp

from fits import const_fixed_poly, const_pair, const_pairs_and_singles, const_wide

# tan(π/8), and a little more.
EDGE = mp.sqrt(2) - 1 + mp.mpf(2) ** -20


def items():
    yield const_pair("QUARTER_PI", mp.pi / 4, "π/4.")
    arc = lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z)
    yield const_pairs_and_singles(
        "ATAN", arc, lambda z: 1 / arc(z), 0, EDGE**2, 3, 5, "atan(√z)/√z for √z up to tan(π/8).", leading=[1]
    )
    asin = lambda z: mp.asin(mp.sqrt(z)) / mp.sqrt(z)
    yield const_pairs_and_singles(
        "ASIN", asin, lambda z: 1 / asin(z), 0, mp.mpf("0.25"), 4, 6, "asin(√z)/√z for z up to 1/4.", leading=[1]
    )
    yield const_fixed_poly(
        "ATAN_FIXED", arc, lambda z: 1, 0, EDGE**2, 13, "atan(√z)/√z for √z up to tan(π/8), in units of 2^-61."
    )
    yield const_wide("EDGE_WIDE", mp.sqrt(2) - 1, "tan(π/8).")
    yield const_wide("QUARTER_PI_WIDE", mp.pi / 4, "π/4.")
    yield const_wide("THREE_QUARTERS_PI_WIDE", 3 * mp.pi / 4, "3π/4.")
