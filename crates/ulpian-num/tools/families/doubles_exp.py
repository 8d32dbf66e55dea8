"""Constants of the fast paths through doubles that are built on e^x."""
import mpmath as mp

from families.activation import ALPHA, CUBE, SCALE, SLOPE
from families.doubles_erf import const_quotient, half_tangent
from fits import const_double, const_doubles

EDGE = mp.mpf("0.50001")


def first(r):
    """(2^r - 1)/r."""
    return mp.expm1(r * mp.log(2)) / r if r != 0 else mp.log(2)


def half_cosh(z):
    """cosh(√z·log(2))/2."""
    return mp.cosh(mp.sqrt(z) * mp.log(2)) / 2


def half_sinh(z):
    """sinh(√z·log(2))/(2√z)."""
    r = mp.sqrt(z)
    return mp.sinh(r * mp.log(2)) / (2 * r) if r else mp.log(2) / 2


def items():
    one = lambda t: 1
    yield const_doubles("EXP2", lambda t: mp.mpf(2) ** t, one, -EDGE, EDGE, 10, "2^r for |r| <= 1/2.", leading=[1])
    yield const_doubles("EXP2M1", first, lambda t: 1 / first(t), -EDGE, EDGE, 10, "(2^r - 1)/r for |r| <= 1/2, error relative to it.")
    yield const_quotient("TANH", half_tangent, EDGE**2, 2, 3, "tanh(√z·log(2)/2)/√z for √z up to 1/2, as a ratio of two polynomials.")
    yield const_doubles("HALF_COSH", half_cosh, lambda z: 1 / half_cosh(z), 0, EDGE**2, 5, "cosh(√z·log(2))/2 for √z up to 1/2.")
    yield const_doubles("HALF_SINH", half_sinh, lambda z: 1 / half_sinh(z), 0, EDGE**2, 5, "sinh(√z·log(2))/(2√z) for √z up to 1/2.")
    yield const_double("LOG2_E", 1 / mp.log(2), "log2(e).")
    yield const_double("LOG2_10", mp.log(10) / mp.log(2), "log2(10).")
    yield const_double("GELU_SLOPE", SLOPE / mp.log(2), "2√(2/π)·log2(e).")
    yield const_double("GELU_CUBE", SLOPE * CUBE / mp.log(2), "2√(2/π)·0.044715·log2(e).")
    yield const_double("SELU_SCALE", SCALE, "The slope of selu above 0.")
    yield const_double("SELU_SCALE_ALPHA", SCALE * ALPHA, "Minus the limit of selu at minus infinity.")
