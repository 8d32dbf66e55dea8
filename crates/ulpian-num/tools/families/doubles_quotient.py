"""Constants of the quotient and the square root in doubles, by steps from a guess on the bits."""
import mpmath as mp

from fits import error_line, float64, rounded


def step(f, low, high):
    """A, D and λ with (A - p)² + D near λ·f(p) for p in [low, high], the error that of three Chebyshev nodes."""
    xs = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / 6) for i in range(3)]
    (a, b, c), (u, v, w) = xs, map(f, xs)
    slope = (u - v) / (a - b)
    factor = 1 / ((slope - (v - w) / (b - c)) / (a - c))
    # (A - p)² has the slope a + b - 2A between a and b.
    middle = (a + b - factor * slope) / 2
    return middle, factor * u - (middle - a) ** 2, factor


def reciprocal_guess(part):
    """Least and greatest p = x·r for r with the bits of 1 - ε less those of x, `part` the fraction of the constant."""
    ends = [(1 + part) / 2, (1 + part / 2) ** 2 / 2, (3 + part) ** 2 / 16]
    return min(ends), max(ends)


def root_guess(part):
    """The same for p = x·r² and half the bits of x, `part` below 1/2; x from 1 to 4."""
    ends = []
    # r is linear in pieces.
    for low, high, start in [(1, 2, part + mp.mpf(1) / 2), (2, 4, part)]:
        at = lambda x: start - (mp.mpf(x) / low - 1) / 2
        pieces = [(low, high)]
        edge = low * (1 + 2 * start)
        if low < edge < high:
            pieces = [(low, edge), (edge, high)]
        for a, b in pieces:
            whole = mp.floor(at((a + b) / mp.mpf(2)))
            r = lambda x: mp.mpf(2) ** (whole - 1) * (1 + at(x) - whole)
            p = lambda x: x * r(x) ** 2
            ends += [p(a), p(b)]
            # Where p's slope is 0.
            flat = r(0) / (3 * (r(0) - r(1)))
            ends += [p(flat)] if a < flat < b else []
    return min(ends), max(ends)


def chain(f, guess, power, part):
    """Both steps' (A, D), the factor left by the last, for p = x·r^power."""
    low, high = guess(part)
    steps = []
    for _ in range(2):
        a, d, factor = step(f, low, high)
        steps.append((a, d))
        # λ and how far the step is off it, seen at the ends and at the error's extremes.
        seen = [((a - p) ** 2 + d) / f(p) for p in (low + (high - low) * i / 4 for i in range(5))]
        low, high = min(seen) ** power, max(seen) ** power
    return steps, factor


def items_of(name, doc, less, f, guess, power, base, near):
    part = mp.findroot(lambda part: chain(f, guess, power, part)[1] - 1, near)
    seed = base + int(mp.nint(part * 2**52))
    part = mp.mpf(seed - base) / 2**52
    steps, _ = chain(f, guess, power, part)
    steps = [[rounded(v, 53) for v in s] for s in steps]
    low, high = guess(part)
    worst = 0
    for i in range(4001):
        p, last = low + (high - low) * i / 4000, 1
        for a, d in steps:
            last = ((a - p) ** 2 + d) / f(p)
            p = last**power
        worst = max(worst, abs(last - 1))
    text = ", ".join(f"({', '.join(map(float64, s))})" for s in steps)
    digits = f"{seed:016x}"
    hexed = "_".join(digits[i : i + 4] for i in range(0, 16, 4))
    yield f"/// {doc}: the guess is this less {less}.\npub const {name}_GUESS: i64 = 0x{hexed};\n"
    yield (
        f"/// A and D of two steps by (A - p)² + D; the second makes up for the factor that the first leaves.\n"
        f"{error_line(mp.log(worst, 2))}pub const {name}_STEPS: [(f64, f64); 2] = [{text}];\n"
    )


def items():
    inverse, inverse_root = lambda p: 1 / p, lambda p: 1 / mp.sqrt(p)
    yield from items_of("RECIPROCAL", "1/x", "the bits of x", inverse, reciprocal_guess, 1, 0x7FD0_0000_0000_0000, (mp.mpf("0.899"), mp.mpf("0.9")))
    yield from items_of("ROOT", "1/√x", "half the bits of x", inverse_root, root_guess, 2, 0x5FE0_0000_0000_0000, (mp.mpf("0.08"), mp.mpf("0.085")))
