"""Constants of exp, exp2, exp10 and what is built on them."""
import mpmath as mp

from fits import const_fixed_poly, const_pair, const_pairs_and_singles, const_words

L2E, L2T = 1 / mp.log(2), mp.log(10) / mp.log(2)
EDGE = mp.mpf("0.50001")


def items():
    yield const_pair("LOG2_E", L2E, "log2(e).")
    yield const_pair("LOG2_10", L2T, "log2(10).")
    yield const_pair("LN_2", mp.log(2), "ln(2).")
    yield const_words("LOG2_E_WORDS", L2E, 95, 3, "log2(e) in units of 2^-95.")
    yield const_words("LOG2_10_WORDS", L2T, 94, 3, "log2(10) in units of 2^-94.")
    exp2 = lambda t: mp.mpf(2) ** t
    yield const_pairs_and_singles(
        "EXP2", exp2, lambda t: 1, -EDGE, EDGE, 5, 4, "2^t for |t| <= 1/2, error relative to 1.", leading=[1]
    )
    yield const_fixed_poly(
        "EXP2_FIXED", exp2, lambda t: 1, -EDGE, EDGE, 15, "2^t for |t| <= 1/2, in units of 2^-61."
    )
