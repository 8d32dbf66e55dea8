"""Constants of the fast paths through doubles of erf, erfc and the erf form of gelu."""
import mpmath as mp

from fits import const_double, const_doubles, error_line, float64, rounded

# Past where erf rounds to 1, and the middle of the squares up to there.
ONE = mp.mpf("3.9205")
MIDDLE = mp.mpf("7.6875")
EDGE = mp.mpf("0.50001")


def ratio(z):
    """erf(√z)/√z."""
    if z < mp.mpf(2) ** -100:
        return 2 / mp.sqrt(mp.pi) * (1 - z / 3)
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z)


def scaled_tail(x):
    """e^(x²)·erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


def half_tangent(z):
    """tanh(√z·log(2)/2)/√z."""
    r = mp.sqrt(z)
    return mp.tanh(r * mp.log(2) / 2) / r if r else mp.log(2) / 2


def quotient(f, b, above, below):
    """Coefficients of P and Q with P/Q near f on [0, b], Q(0) = 1, and log2 of the greatest relative error."""
    n = 8 * (above + below)
    xs = [b / 2 + b / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    fs = [f(x) for x in xs]
    order = [("p", i) for i in range(above)] + [("q", i) for i in range(1, below)]
    done = {("q", 0): mp.mpf(1)}
    weights = [1 / v for v in fs]
    term = lambda j, kind, i: xs[j] ** i * (1 if kind == "p" else -fs[j])
    # One coefficient is rounded after the other, so that the rest makes up for it.
    for v in [None] + order:
        free = [o for o in order if o not in done]
        for _ in range(3 if v is None else 1):
            rows, rhs = mp.matrix(n, len(free)), mp.matrix(n, 1)
            for j in range(n):
                rhs[j] = -sum(c * term(j, *o) for o, c in done.items()) * weights[j]
                for col, o in enumerate(free):
                    rows[j, col] = term(j, *o) * weights[j]
            x = mp.lu_solve(rows, rhs)
            now = done | dict(zip(free, x))
            below_at = lambda y: sum(now["q", i] * y**i for i in range(below))
            weights = [1 / (w * below_at(y)) for w, y in zip(fs, xs)]
        if v is not None:
            done[v] = rounded(now[v], 53)
    p, q = [done["p", i] for i in range(above)], [done["q", i] for i in range(below)]
    value = lambda y: mp.polyval(p[::-1], y) / mp.polyval(q[::-1], y)
    steps = [b * (2 * i + 1) / 1201 for i in range(600)]
    return p, q, mp.log(max(abs(value(y) / f(y) - 1) for y in steps), 2)


def const_quotient(name, f, b, above, below, doc):
    p, q, err = quotient(f, mp.mpf(b), above, below)
    vs = lambda c: ", ".join(map(float64, c))
    out = f"/// {doc}\n{error_line(err)}pub const {name}_ABOVE: [f64; {above}] = [{vs(p)}];\n"
    return out + f"/// The polynomial below.\npub const {name}_BELOW: [f64; {below}] = [{vs(q)}];\n"


def items():
    near = lambda v: ratio(v + MIDDLE)
    yield const_double("MIDDLE", MIDDLE, "The middle of the squares of erf's arguments.")
    yield const_doubles(
        "ERF", near, lambda v: 1 / near(v), -MIDDLE, ONE**2 - MIDDLE, 24,
        "erf(√z)/√z in z - MIDDLE for √z up to 3.92, error relative to it.",
    )
    yield const_quotient(
        "TANH", half_tangent, EDGE**2, 2, 3, "tanh(√z·log(2)/2)/√z for √z up to 1/2, as a ratio of two polynomials.",
    )
    yield const_quotient("ERFC", scaled_tail, "9.1876", 8, 9, "e^(x²)·erfc(x) up to 9.1875, as a ratio of two polynomials.")
    root = mp.sqrt(2)
    yield const_quotient(
        "GELU", lambda x: scaled_tail(x / root) / 2, "12.7501", 8, 9,
        "e^(x²/2)·erfc(x/√2)/2 up to 12.75, as a ratio of two polynomials.",
    )
    yield const_double("LOG2_E", 1 / mp.log(2), "log2(e).")
