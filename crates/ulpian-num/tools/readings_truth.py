#!/usr/bin/env python3
"""Writes tests/data/readings_truth.txt: values to about 106 bits, by mpmath, of what tools/truth.py has no rows for.

A line: function, its arguments, nearest double, the rest as a double (all bit patterns in hex). Run: python3 readings_truth.py
"""
import os
import random

import mpmath as mp

from truth import bits, spread, uniform

mp.mp.prec = 3000
random.seed("pairs")


def pairs(n, lo, hi, a=0, b=0):
    """Signed pairs, or with a = 1 (b = 1) positive firsts (seconds)."""
    place = lambda x, positive: abs(x) if positive else x
    return [(place(x, a), place(y, b)) for x, y in zip(spread(lo, hi, n), spread(lo, hi, n))]


def fmod(x, y):
    return x - y * mp.mpf(int(x / y))


def power(x, y):
    return mp.power(x, y) if x > 0 else (-1) ** int(y) * mp.power(-x, y)


single = lambda xs: [(x,) for x in xs]
CASES = {
    "sqrt": (mp.sqrt, single([abs(x) for x in spread(-300, 300, 40)])),
    "exp2": (lambda x: mp.power(2, x), single(uniform(-900, 900, 40) + spread(-40, 2, 30))),
    "exp10": (lambda x: mp.power(10, x), single(uniform(-280, 280, 40) + spread(-40, 2, 30))),
    "div": (lambda x, y: x / y, pairs(40, -300, 300)),
    "pow": (power, [(abs(x), y) for x, y in pairs(60, -3, 3)] + list(zip(spread(-2, 2, 20), [-3.0, 2.0, 5.0, 8.0] * 5))
            + list(zip([abs(x) for x in spread(-20, 20, 30)], uniform(-30, 30, 30)))),
    "atan2": (mp.atan2, pairs(60, -4, 4) + pairs(40, -300, 300)),
    "hypot": (mp.hypot, pairs(40, -4, 4) + pairs(40, -300, 300)),
    "logaddexp": (lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), list(zip(uniform(-30, 30, 60), uniform(-30, 30, 60)))),
    "xlogy": (lambda x, y: x * mp.log(y), pairs(60, -4, 4, 0, 1)),
    "fmod": (fmod, pairs(40, -4, 4) + pairs(30, -40, 40)),
    "remainder": (lambda x, y: x - y * mp.floor(x / y), pairs(40, -4, 4) + pairs(30, -40, 40)),
}

if __name__ == "__main__":
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "readings_truth.txt")
    with open(path, "w") as out:
        for name, (f, xs) in CASES.items():
            for x in xs:
                y = f(*map(mp.mpf, x))
                hi = float(y)
                out.write(" ".join([name] + [f"{bits(v):016x}" for v in (*x, hi, float(y - mp.mpf(hi)))]) + "\n")
