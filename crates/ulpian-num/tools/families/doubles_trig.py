"""Constants of the fast paths through doubles of sin, cos, tan, sin πx, cos πx, atan, asin and acos."""
import mpmath as mp

from families.doubles_erf import const_quotient
from fits import const_double, const_doubles, rounded

# The multiple of π is rounded, and so its rest may pass a half.
OVER = mp.mpf("0.5001")


def sinc(z):
    r = mp.sqrt(z)
    return mp.sin(r) / r if r else mp.mpf(1)


def tangent(z):
    r = mp.sqrt(z)
    return mp.tan(r) / r if r else mp.mpf(1)


def arc(f):
    return lambda z: f(mp.sqrt(z)) / mp.sqrt(z) if z else mp.mpf(1)


def items():
    yield const_double("PI", mp.pi, "π.")
    first = rounded(mp.pi, 35)
    yield const_double("PI_HIGH", first, "The first 35 bits of π.")
    yield const_double("PI_LOW", mp.pi - first, "The rest of π.")
    yield const_doubles("SIN", sinc, lambda z: 1 / sinc(z), 0, (OVER * mp.pi) ** 2, 8, "sin(√z)/√z for √z up to π/2.", leading=[1])
    turn = lambda z: mp.pi * sinc(mp.pi**2 * z)
    yield const_doubles("SIN_PI", turn, lambda z: 1 / turn(z), 0, mp.mpf("0.2501"), 8, "sin(π√z)/√z for √z up to 1/2.")
    yield const_quotient("TAN", tangent, (OVER * mp.pi / 2) ** 2, 3, 4, "tan(√z)/√z for √z up to π/4, as a ratio of two polynomials.")
    yield const_double("TAN_EDGE", mp.tan(mp.pi / 8), "tan(π/8).")
    atan, asin = arc(mp.atan), arc(mp.asin)
    yield const_doubles("ATAN", atan, lambda z: 1 / atan(z), 0, (mp.tan(mp.pi / 8) + mp.mpf(2) ** -20) ** 2, 9, "atan(√z)/√z for √z up to tan(π/8).")
    yield const_doubles("ASIN", asin, lambda z: 1 / asin(z), 0, mp.mpf("0.25"), 10, "asin(√z)/√z for z up to 1/4.")
