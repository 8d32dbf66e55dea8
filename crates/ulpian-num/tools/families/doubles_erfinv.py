"""Constants of the fast path through doubles of erfinv."""
import mpmath as mp

from families.erfinv import ratio
from fits import const_double, const_doubles

# The greatest w = -log(1 - x²) of the fast path, and the middle.
END = mp.mpf(9)
MIDDLE = END / 2
# The square of (√2 - 1)/(√2 + 1), and a little more.
EDGE = mp.mpf("0.029438")


def log_ratio(z):
    """log((1 + s)/(1 - s))/s in z = s²."""
    s = mp.sqrt(z)
    return 2 * mp.atanh(s) / s if s else mp.mpf(2)


def items():
    yield const_double("MIDDLE", MIDDLE, "The middle of the range of w.")
    yield const_doubles("LOG", log_ratio, lambda z: 1 / log_ratio(z), 0, EDGE, 6, "log((1 + s)/(1 - s))/s in s² for |s| up to (√2 - 1)/(√2 + 1).")
    near = lambda t: ratio(t + MIDDLE)
    yield const_doubles("RATIO", near, lambda t: 1 / near(t), -MIDDLE, MIDDLE + mp.mpf("0.001"), 24, "erfinv(x)/x in w - MIDDLE, w = -log(1 - x²) from 0 to 9.")
