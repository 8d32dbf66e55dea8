"""Constants of sin, cos and tan, in radians and in turns."""
import mpmath as mp

from fits import (
    const_fixed_poly, const_pairs_and_singles, const_single, const_wide, error_line, float32, pair, rounded, single,
)

# The fast reduction picks a quarter turn with a float of 2/pi and |x| < 2^18, so it may overshoot an eighth of a turn.
EDGE = mp.pi / 4 + mp.mpf(2) ** 18 * abs(single(2 / mp.pi) - 2 / mp.pi) * mp.pi / 2 + mp.mpf(2) ** -12
Z = EDGE**2


def sinc(z):
    r = mp.sqrt(z)
    return mp.sin(r) / r if r else mp.mpf(1)


def cosine(z):
    return mp.cos(mp.sqrt(z))


def rational(f, b, forms_p, forms_q):
    """P, Q with P(z)/Q(z) near f on [0, b], both starting at 1, and log2 of the greatest relative error."""
    n = 12 * (len(forms_p) + len(forms_q))
    zs = [b / 2 + b / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    fixed = {}
    names = [("p", i + 1, v) for i, v in enumerate(forms_p)] + [("q", i + 1, v) for i, v in enumerate(forms_q)]
    weights = [1 / f(z) for z in zs]
    # Highest first: what is cut from a single is made up for by the pairs.
    order = sorted(names, key=lambda v: v[2] == "pair")
    while True:
        free = [v for v in names if v[:2] not in fixed]
        for _ in range(4 if free else 1):
            rows, rhs = mp.matrix(n, max(1, len(free))), mp.matrix(n, 1)
            for j, z in enumerate(zs):
                term = lambda kind, i: z**i if kind == "p" else -f(z) * z**i
                rhs[j] = (f(z) - 1 - sum(c * term(k, i) for (k, i), c in fixed.items())) * weights[j]
                for col, (kind, i, _) in enumerate(free):
                    rows[j, col] = term(kind, i) * weights[j]
            now = dict(fixed)
            if free:
                x = mp.lu_solve(rows, rhs)
                now |= {v[:2]: x[col] for col, v in enumerate(free)}
            q = lambda z: 1 + sum(c * z**i for (k, i), c in now.items() if k == "q")
            weights = [1 / (f(z) * q(z)) for z in zs]
        if not free:
            break
        kind, i, form = next(v for v in order if v[:2] not in fixed)
        fixed[kind, i] = single(now[kind, i]) if form == "single" else sum(pair(now[kind, i]))
    p = [mp.mpf(1)] + [fixed["p", i + 1] for i in range(len(forms_p))]
    q = [mp.mpf(1)] + [fixed["q", i + 1] for i in range(len(forms_q))]
    steps = [b * (2 * i + 1) / 1201 for i in range(600)]
    err = max(abs(mp.polyval(p[::-1], z) / mp.polyval(q[::-1], z) / f(z) - 1) for z in steps)
    return p, q, mp.log(err, 2)


def const_pairs(name, values, doc):
    ps = ", ".join("({}, {})".format(*map(float32, pair(x))) for x in values)
    return f"/// {doc}\npub const {name}: [(f32, f32); {len(values)}] = [{ps}];\n"


def items():
    yield const_single("TWO_OVER_PI", 2 / mp.pi, "2/π.")
    rest, parts = mp.pi / 2, []
    for _ in range(3):
        parts.append(single(rest))
        rest -= parts[-1]
    yield "/// π/2 as a sum.\npub const HALF_PI: [f32; 3] = [" + ", ".join(map(float32, parts)) + "];\n"
    yield "/// π as a sum.\npub const PI: (f32, f32) = ({}, {});\n".format(*map(float32, pair(mp.pi)))
    yield const_pairs_and_singles(
        "SIN", sinc, lambda z: 1 / sinc(z), 0, Z, 3, 3, "sin(√z)/√z for √z up to π/4 and a little more.", leading=[1]
    )
    yield const_pairs_and_singles(
        "COS", cosine, lambda z: 1 / cosine(z), 0, Z, 3, 3, "cos(√z) there.", leading=[1, mp.mpf(-0.5)]
    )
    p, q, err = rational(lambda z: mp.tan(mp.sqrt(z)) / mp.sqrt(z), Z, ["pair", "single"], ["pair", "pair", "single"])
    yield const_pairs("TAN_NUMERATOR", p[:2], "tan(√z)/√z is the ratio of two polynomials.\n" + error_line(err).strip())
    yield const_single("TAN_NUMERATOR_LAST", p[2], "The last coefficient above.")
    yield const_pairs("TAN_DENOMINATOR", q[:3], "The polynomial below.")
    yield const_single("TAN_DENOMINATOR_LAST", q[3], "The last coefficient below.")
    quarter = mp.mpf("0.25")
    turn = mp.pi / 2
    yield const_fixed_poly(
        "SIN_FIXED", lambda z: turn * sinc(turn**2 * z), lambda z: 1, 0, quarter, 8,
        "sin(s·π/2)/s in z = s² for |s| <= 1/2, in units of 2^-61.",
    )
    yield const_fixed_poly(
        "COS_FIXED", lambda z: cosine(turn**2 * z), lambda z: 1, 0, quarter, 8,
        "cos(s·π/2) in z = s² for |s| <= 1/2, in units of 2^-61.",
    )
    yield const_wide("TWO_OVER_PI_WIDE", 2 / mp.pi, "2/π for `Wide::lit`.")
    mp.mp.dps = 400
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * 37)))
    mp.mp.dps = 60
    words = [0, 0, 0] + [bits >> (32 * (36 - i)) & 0xFFFFFFFF for i in range(37)]
    text = ", ".join(f"0x{w:08x}" for w in words)
    yield f"/// 2/π as a fraction, highest word first, after three words of zeros.\npub const TWO_OVER_PI_WORDS: [u32; 40] = [{text}];\n"
