#!/usr/bin/env python3
"""Writes tests/data/f64_truth.txt: arguments and values of the f64 functions to about 100 bits, by mpmath.

A line: function, argument, nearest double, the rest as a double (all bit patterns in hex). Run: python3 truth.py
"""
import os
import random
import struct

import mpmath as mp

mp.mp.prec = 400
random.seed(20)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def double(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def around(x, n=3):
    b = bits(x)
    return [double(b + i) for i in range(-n, n + 1)]


def spread(lo, hi, n):
    """Random significands and signs, exponents of two from lo to hi."""
    return [random.choice([-1, 1]) * random.uniform(1, 2) * 2.0 ** random.randint(lo, hi) for _ in range(n)]


LN2 = float(mp.log(2))
reduction = [v for k in (1, -1, 2, -3, 7, -11, 500, -900) for v in around((k - 0.5) * LN2, 2)]
uniform = lambda a, b, n: [random.uniform(a, b) for _ in range(n)]
small = spread(-60, 1, 120)
CASES = {
    "exp": (mp.exp, uniform(-746, 710, 250) + small + reduction + around(709.782712893384, 2) + around(-708.39641853226, 3)
            + around(-745.1332191019411, 2)),
    "expm1": (mp.expm1, uniform(-45, 60, 200) + uniform(-2, 2, 200) + small + reduction + around(709.782712893384, 2)),
    "log": (mp.log, [abs(x) for x in spread(-1022, 1023, 200) + spread(-3, 3, 150)] + uniform(0.6, 1.6, 200) + around(1.0, 8)[:8]
            + around(1.0, 8)[9:] + around(2**0.5) + around(0.5**0.5) + [5e-324, 1e-310, 2.2250738585072014e-308]),
    "log1p": (mp.log1p, [x for x in small if x > -1] + [abs(x) for x in spread(0, 1023, 120)] + uniform(-0.5, 1, 250)
              + uniform(-1, -0.5, 60) + around(-1.0, 4)[:4] + around(2**0.5 - 1) + around(0.5**0.5 - 1)),
    "tanh": (mp.tanh, spread(-40, 4, 250) + uniform(-2, 2, 250) + around(0.17328679513998632) + around(0.5198603854199589)),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), uniform(-745, -20, 100) + uniform(-20, 40, 250) + small + reduction[:20]),
    "sinpi": (mp.sinpi, uniform(-4, 4, 300) + spread(-1022, 52, 200) + around(0.25) + around(1.0) + around(1.5) + around(3.25)
              + [5e-324, 3e-310]),
    "cospi": (mp.cospi, uniform(-4, 4, 300) + spread(-40, 52, 200) + around(0.25) + around(1.0) + around(1.5) + around(3.25)),
}
# Doubles beside multiples of π/2, among them one of those that come nearest to any.
random.seed(21)
ANGLES = (uniform(-8, 8, 200) + spread(-1022, 1023, 200) + spread(1, 30, 100) + [6381956970095103 * 2.0**797]
          + [v for k in (1, 2, 3, 4, 7, 22, 355, 12345, 10**9, 10**15) for v in around(float(k * mp.pi / 2), 1)]
          + [v for k in (1, 3, 5, 7, 1001) for v in around(float(k * mp.pi / 4), 1)] + spread(-60, 1, 120))
CASES |= {"sin": (mp.sin, ANGLES), "cos": (mp.cos, ANGLES), "tan": (mp.tan, ANGLES)}
random.seed(22)
EDGES = [v for x in (0.5, 2**0.5 - 1, 2**0.5 + 1, 1.0) for v in around(x)]
UNITS = (uniform(-1, 1, 250) + spread(-1022, -1, 150) + spread(-12, -1, 150) + [1 - abs(x) for x in spread(-52, -2, 80)]
         + [x for x in EDGES if x <= 1] + [abs(x) - 1 for x in spread(-52, -2, 80)] + [5e-324, -3e-310])
CASES |= {
    "atan": (mp.atan, uniform(-4, 4, 250) + spread(-1022, 1023, 150) + spread(-12, 30, 150) + EDGES + [5e-324, -3e-310]),
    "asin": (mp.asin, UNITS),
    "acos": (mp.acos, UNITS),
}

random.seed("logarithms")
positive = lambda xs: [abs(x) for x in xs]
wide = positive(spread(-1022, 1023, 150) + spread(-3, 3, 100)) + uniform(0.6, 1.6, 150) + [5e-324, 1e-310]
CASES.update({
    "log2": (lambda x: mp.log(x, 2), wide + around(1.0, 8)[:8] + around(1.0, 8)[9:] + around(2**0.5) + [2.0**-1074, 2.0**77]),
    "log10": (mp.log10, wide + around(1.0, 8)[:8] + around(1.0, 8)[9:] + around(0.5**0.5) + [10.0**k for k in range(1, 23)]
              + around(1e15, 2)),
    "asinh": (mp.asinh, spread(-1022, 1023, 80) + spread(-40, 4, 150) + uniform(-3, 3, 150)),
    "acosh": (mp.acosh, [1 + abs(x) for x in spread(-52, 3, 200)] + positive(spread(1, 1023, 80)) + around(1.0, 9)[10:]),
    "atanh": (mp.atanh, spread(-1022, -1, 60) + spread(-40, -1, 150) + uniform(-1, 1, 150) + around(-1.0, 9)[:9]),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), uniform(-745, 40, 150) + uniform(-5, 5, 150) + small + around(-745.13, 1)),
    "logsigmoid": (lambda x: -mp.log1p(mp.exp(-x)), uniform(-40, 745, 100) + uniform(-5, 5, 100) + small[:40]),
})

random.seed("special")
CASES.update({
    "reciprocal": (lambda x: 1 / x, spread(-1022, 1022, 100)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), positive(spread(-1074, 1023, 200) + spread(-2, 2, 200)) + around(1.0) + around(4.0) + [5e-324, 3e-310]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), spread(-1074, 1023, 200) + spread(-3, 3, 200) + around(1.0) + around(27.0) + [5e-324, 3e-310]),
    "erf": (mp.erf, uniform(-6, 6, 250) + uniform(-1, 1, 150) + spread(-1022, 2, 150) + around(1.0) + [5e-324, 3e-310]),
    "erfc": (mp.erfc, uniform(-6, 27, 250) + uniform(-1, 3, 150) + spread(-60, 2, 100) + around(26.54, 2)),
    "gelu": (lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, uniform(-38.5, 9, 250) + uniform(-2, 2, 150) + spread(-1021, 5, 150)),
})

random.seed("activations")
TAIL = lambda lo: uniform(lo, -1, 90) + uniform(-5, 5, 80) + small[:50] + uniform(5, 50, 10)
gelu_y = lambda x: 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)
SCALE, ALPHA = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")
CASES.update({
    "sinh": (mp.sinh, spread(-40, 9, 120) + uniform(-3, 3, 80) + reduction[:20] + around(710.4758600739439, 2)),
    "cosh": (mp.cosh, spread(-10, 9, 120) + uniform(-3, 3, 80) + reduction[:20] + around(-710.4758600739439, 2)),
    "silu": (lambda x: x / (1 + mp.exp(-x)), TAIL(-751) + spread(-1022, -60, 20)),
    "gelu_tanh": (lambda x: x / (1 + mp.exp(-gelu_y(x))), TAIL(-21.6) + spread(-1022, -60, 20)),
    "mish": (lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), TAIL(-751) + spread(-1022, -60, 20)),
    "elu": (lambda x: x if x > 0 else mp.expm1(x), TAIL(-40)),
    "celu": (lambda x: x if x > 0 else mp.expm1(x), uniform(-5, 5, 40)),
    "selu": (lambda x: SCALE * x if x > 0 else SCALE * ALPHA * mp.expm1(x), TAIL(-40) + spread(-1022, 1023, 40)),
})

random.seed("gamma")
ZEROS = [-0.504083008264455, -1.573498473162390, -2.610720868444145, -10.717688303143, -2.457024738220801, -2.747682646727413,
         -3.143580888349980, -3.955294284858597, -4.991544640560048]
BESIDE = [z * (1 + d) for z in ZEROS for d in (0.0, 1e-13, -1e-9, 1e-5, -1e-3)]
GAMMA = (positive(spread(-1022, 1014, 80) + spread(-12, 12, 120)) + uniform(0, 12, 200) + [1 + x for x in spread(-50, -2, 40)]
         + [2 + x for x in spread(-50, -2, 40)] + around(8.0) + around(4.0) + [5e-324, 3e-310]
         + [-x for x in uniform(0, 30, 120)] + [-abs(x) for x in spread(-1022, 20, 60)] + BESIDE)
WHOLE = lambda xs: [x for x in xs if x not in (1, 2) and not (x < 0 and x == int(x))]
CASES.update({
    "erfinv": (mp.erfinv, uniform(-1, 1, 250) + spread(-1022, -1, 60) + spread(-20, -1, 80) + [5e-324, -3e-310]
               + [1 - abs(x) for x in spread(-53, -2, 100)]),
    "digamma": (mp.digamma, WHOLE(GAMMA + around(1.4616321449683622, 5) + [1.4616321449683622 + x for x in spread(-50, -3, 40)])),
    "lgamma": (lambda x: mp.re(mp.loggamma(x)), WHOLE(GAMMA + around(2.5563481638716906e305, 2))),
})

random.seed("powers of constants")
CASES.update({
    "exp2": (lambda x: mp.mpf(2) ** x, uniform(-1075, 1024, 200) + small + uniform(-2, 2, 80) + around(1024.0, 2)[:2]
             + [-1074.0, -1022.5, 77.0, 0.5]),
    "exp10": (lambda x: mp.mpf(10) ** x, uniform(-323, 308, 200) + small + uniform(-2, 2, 80) + [1.0, 22.0, -5.0, 308.25]),
})

if __name__ == "__main__":
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "f64_truth.txt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        for name, (f, xs) in CASES.items():
            for x in xs:
                y = f(mp.mpf(x))
                if abs(y) >= mp.mpf(2) ** 1024 - mp.mpf(2) ** 970:
                    hi, lo = float("inf") if y > 0 else float("-inf"), 0.0
                else:
                    hi = float(y)
                    lo = float(y - mp.mpf(hi))
                out.write(f"{name} {bits(x):016x} {bits(hi):016x} {bits(lo):016x}\n")
