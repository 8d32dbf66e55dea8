"""Constants of the readings: double-double numbers, and where functions turn."""
import mpmath as mp


def parts(x, n):
    out = []
    for _ in range(n):
        out.append(float(x))
        x -= mp.mpf(out[-1])
    return out


def items():
    mp.mp.prec = 500
    yield "/// log 2 as a sum.\npub const LN2: [f64; 4] = [" + ", ".join(map(repr, parts(mp.log(2), 4))) + "];\n"
    numbers = [
        ("LN10", mp.log(10), "log 10"),
        ("PI", mp.pi, "π"),
        ("HALF_PI", mp.pi / 2, "π/2"),
        ("TWO_OVER_SQRT_PI", 2 / mp.sqrt(mp.pi), "2/√π"),
        ("SQRT_HALF", mp.sqrt(mp.mpf(1) / 2), "√½"),
        ("GELU_SLOPE", 2 * mp.sqrt(2 / mp.pi), "2√(2/π)"),
        ("GELU_CUBE", mp.mpf("0.044715"), "The cube's factor in gelu's tanh form"),
        ("HALF_LOG_2PI", mp.log(2 * mp.pi) / 2, "log(2π)/2"),
        ("SELU_SCALE", mp.mpf("1.0507009873554804934193349852946"), "selu's scale"),
        ("SELU_ALPHA", mp.mpf("1.6732632423543772848170429916717"), "selu's alpha"),
    ]
    for name, value, doc in numbers:
        high, low = parts(value, 2)
        yield f"/// {doc}.\npub const {name}: (f64, f64) = ({high!r}, {low!r});\n"
    zero = mp.findroot(mp.digamma, mp.mpf("1.4616321"))
    numbers = ", ".join(map(repr, parts(zero, 3)))
    yield f"/// The positive zero of digamma as a sum.\npub const DIGAMMA_ZERO: [f64; 3] = [{numbers}];\n"
    tables = [
        ("ZETA", [1 - mp.euler] + [(mp.zeta(n) - 1) / n for n in range(2, 58)], "1 - γ, then (ζ(n) - 1)/n for n from 2"),
        ("BERNOULLI", [mp.bernoulli(2 * k) / (2 * k) for k in range(1, 23)], "B_2k/2k for k from 1"),
    ]
    for name, values, doc in tables:
        text = ", ".join("({!r}, {!r})".format(*parts(x, 2)) for x in values)
        yield f"/// {doc}.\npub const {name}: [(f64, f64); {len(values)}] = [{text}];\n"
    y = lambda x: 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
    valleys = [
        ("SILU", lambda x: x / (1 + mp.exp(-x)), -1.3, -1.2),
        ("GELU", lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, -0.8, -0.7),
        ("GELU_TANH", lambda x: x / (1 + mp.exp(-y(x))), -0.8, -0.7),
        ("MISH", lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), -1.3, -1.1),
    ]
    mp.mp.prec = 200
    for name, f, low, high in valleys:
        at = mp.findroot(lambda x: mp.diff(f, x), (low, high), solver="anderson", tol=1e-60)
        doc = f"/// Where {name.lower()} is least, and its value there, to the nearest double.\n"
        yield doc + f"pub const {name}_LEAST: (f64, f64) = ({float(at)!r}, {float(f(at))!r});\n"
