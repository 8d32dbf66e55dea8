"""Constants of erfinv."""
import mpmath as mp

from fits import const_short_pairs, fit, fixed


def ratio(w):
    """erfinv(x)/x at w = -log(1 - x²)."""
    if w < mp.mpf(10) ** -25:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


# (from, to, centre, scale): the slow path's pieces; w - centre is at most 3/4 of the scale.
PIECES = [(0, 4, 2, 4), (4, 10, 7, 4), (10, 20, 15, 8), (20, 37, mp.mpf("28.5"), 16)]
TERMS = 25
# For these centres only the steps 2 and 5 of the pairs cancel.
# Where the fast path changes its polynomial, and its end: 1 - x² is 2^-23 at least.
SPLIT, END = mp.mpf("5.5"), mp.mpf(16)
CENTRES = mp.mpf("2.75"), mp.mpf("10.375")


def items():
    for name, (a, b), centre in zip(("NEAR", "FAR"), ((0, SPLIT), (SPLIT, END)), CENTRES):
        g = lambda t: ratio(t + centre)
        yield const_short_pairs(
            name, g, lambda t: 1 / g(t), a - centre, b - centre, 10, 7,
            f"erfinv(x)/x in w - {centre}, w = -log(1 - x²) from {a} to {b}.",
        )
    rows, errs = [], []
    for a, b, centre, scale in PIECES:
        g = lambda t: ratio(scale * t + centre)
        c, err = fit(g, lambda t: 1 / g(t), mp.mpf(a - centre) / scale, mp.mpf(b - centre) / scale, [("fixed", 60)] * TERMS)
        rows.append([fixed(x, 60) for x in c])
        errs.append(mp.nstr(err, 4))
    columns = ",\n".join("[" + ", ".join(str(r[k]) for r in rows) + "]" for k in range(TERMS))
    yield f"/// erfinv(x)/x in (w - c)/s, w from 0, 4, 10, 20, (c, s) = (2, 4), (7, 4), (15, 8), (28.5, 16), in units of 2^-60: a row for each power.\n/// Greatest errors of the fits 2^{errs}.\npub const RATIO_FIXED: [[i64; 4]; {TERMS}] = [{columns}];\n"
