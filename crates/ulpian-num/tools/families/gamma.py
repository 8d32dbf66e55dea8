"""Constants of digamma and of log |Γ|."""
import mpmath as mp

from fits import const_short_pairs, const_wide, fit, fixed

# The positive zero of digamma, and log(2π)/2.
ZERO = mp.findroot(mp.digamma, mp.mpf("1.4616321"))
HALF_LOG_2PI = mp.log(2 * mp.pi) / 2
# The least argument of the fast paths' polynomials.
LEAST = mp.mpf(7) / 8
TINY = mp.mpf(10) ** -9


def slope(x):
    """digamma(x)/(x - its zero)."""
    d = x - ZERO
    if abs(d) < mp.mpf(10) ** -25:
        return mp.psi(1, ZERO) + d * mp.psi(2, ZERO) / 2
    return mp.digamma(x) / d


def curve(x):
    """log Γ(x)/((x - 1)·(x - 2))."""
    for zero, other in ((1, 2), (2, 1)):
        d = x - zero
        if abs(d) < mp.mpf(10) ** -20:
            return (mp.psi(0, zero) + d * mp.psi(1, zero) / 2 + d * d * mp.psi(2, zero) / 6) / (x - other)
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def excess(t):
    """(e^digamma(x) - x + 1/2)·(x + 1) at t = (x - 1)/(x + 1) - 1/2."""
    t = min(t, mp.mpf(1) / 2 - TINY)
    x = (mp.mpf(3) / 2 + t) / (mp.mpf(1) / 2 - t)
    return (mp.exp(mp.digamma(x)) - x + mp.mpf(1) / 2) * (x + 1)


def excess_weight(t):
    """Relative error of digamma for an error of 1 in `excess`, held near its zero."""
    t = min(t, mp.mpf(1) / 2 - TINY)
    x = (mp.mpf(3) / 2 + t) / (mp.mpf(1) / 2 - t)
    y = mp.digamma(x)
    return 1 / ((x + 1) * mp.exp(y) * max(abs(y), mp.mpf(1) / 32))


def stirling(x):
    """What Stirling's formula leaves of log Γ(x)."""
    return mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - HALF_LOG_2PI


def gamma_tail(t):
    """`stirling`·x at t = 64/x² - 1/2."""
    x = 8 / mp.sqrt(max(t + mp.mpf(1) / 2, TINY))
    return stirling(x) * x


def digamma_tail(t):
    """(log(x) - 1/(2x) - digamma(x))·x² at t = 64/x² - 1/2."""
    x = 8 / mp.sqrt(max(t + mp.mpf(1) / 2, TINY))
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x


HALF = mp.mpf(1) / 2
TERMS = 25


def table(name, f, tail, doc):
    """f(2^k·(3/2 + t)) for k = 0, 1, 2, then the tail: one polynomial each, all of the same length."""
    rows, errs = [], []
    for g, weight in [((lambda t, k=k: f(2**k * (1 + HALF + t))), None) for k in range(3)] + [(tail, 1)]:
        c, err = fit(g, (lambda t: 1) if weight else (lambda t: 1 / g(t)), -HALF, HALF, [("fixed", 61)] * TERMS)
        rows.append([fixed(x, 61) for x in c])
        errs.append(mp.nstr(err, 4))
    columns = ",\n".join("[" + ", ".join(str(r[k]) for r in rows) + "]" for k in range(TERMS))
    return f"/// {doc}\n/// Greatest errors of the fits 2^{errs}.\npub const {name}: [[i64; 4]; {TERMS}] = [{columns}];\n"


def items():
    yield const_short_pairs(
        "DIGAMMA", excess, excess_weight, (LEAST - 1) / (LEAST + 1) - HALF, HALF, 9, 6,
        "(e^digamma(x) - x + 1/2)·(x + 1) in (x - 1)/(x + 1) - 1/2 for x >= 7/8, weighted for digamma's relative error.",
    )
    yield const_short_pairs(
        "LGAMMA", lambda t: curve(t + 1 + HALF), lambda t: 1 / curve(t + 1 + HALF), LEAST - 1 - HALF, HALF, 9, 8,
        "log Γ(x)/((x - 1)·(x - 2)) in x - 3/2, x from 7/8 to 2.",
    )
    rest = lambda t: stirling(3 / max(t + HALF, TINY)) + HALF_LOG_2PI
    yield const_short_pairs(
        "STIRLING", rest, lambda t: 1, -HALF, HALF, 9, 8,
        "log Γ(x) - (x - 1/2)·log(x) + x in 3/x - 1/2, x from 3.",
    )
    yield table(
        "DIGAMMA_FIXED", slope, digamma_tail,
        "digamma(x)/(x - its zero) in x/2^k - 3/2, 2^k <= x < 2^(k + 1), for k = 0, 1, 2, and (log(x) - 1/(2x) - digamma(x))·x² in 64/x² - 1/2 for x >= 8, in units of 2^-61: a row for each power.",
    )
    yield table(
        "LGAMMA_FIXED", curve, gamma_tail,
        "The same of log Γ(x)/((x - 1)·(x - 2)), and (log Γ(x) - (x - 1/2)·log(x) + x - log(2π)/2)·x.",
    )
    high = mp.mpf(fixed(ZERO, 58)) / mp.mpf(2) ** 58
    yield const_wide("ZERO_WIDE", high, "The positive zero of digamma, to 59 bits: differences with it are exact.")
    yield const_wide("ZERO_REST_WIDE", ZERO - high, "What that leaves.")
    yield const_wide("HALF_LOG_2PI_WIDE", HALF_LOG_2PI, "log(2π)/2.")
    yield const_wide("PI_WIDE", mp.pi, "π.")
    yield const_wide("PI_RECIPROCAL_WIDE", 1 / mp.pi, "1/π.")
