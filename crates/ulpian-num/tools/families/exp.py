"""Constants of exp, exp2, exp10 and what is built on them."""
import mpmath as mp

from fits import const_fixed_poly, const_pairs_and_singles, const_single, const_split, const_words

L2E, L2T = 1 / mp.log(2), mp.log(10) / mp.log(2)
EDGE = mp.mpf("0.50001")


def items():
    # 15 bits: their products with an exponent are exact.
    yield const_single("LOG2_E", L2E, "log2(e).")
    yield const_split("LN_2", mp.log(2), 15, 15, "ln(2).")
    yield const_single("LOG2_10", L2T, "log2(10).")
    yield const_split("LOG10_2", 1 / L2T, 15, 15, "log10(2).")
    yield const_words("LOG2_E_WORDS", L2E, 95, 3, "log2(e) in units of 2^-95.")
    yield const_words("LOG2_10_WORDS", L2T, 94, 3, "log2(10) in units of 2^-94.")
    one = lambda t: 1
    for name, base, edge, leading in [
        ("EXP", mp.e, mp.log(2) / 2, [1, 1]),
        ("EXP2", mp.mpf(2), mp.mpf(1) / 2, [1]),
        ("EXP10", mp.mpf(10), 1 / L2T / 2, [1]),
    ]:
        edge *= mp.mpf("1.0001")
        f = lambda t: base**t
        doc = f"{mp.nstr(base, 4)}^t for |t| <= {mp.nstr(edge, 4)}, error relative to 1."
        yield const_pairs_and_singles(name, f, one, -edge, edge, 5, 4, doc, leading=leading, plain=1)
    exp2 = lambda t: mp.mpf(2) ** t
    yield const_fixed_poly("EXP2_FIXED", exp2, one, -EDGE, EDGE, 15, "2^t for |t| <= 1/2, in units of 2^-61.")
