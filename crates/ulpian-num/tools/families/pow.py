"""Constants of pow."""
import mpmath as mp

from families.log import LN2, Z, atanh, atanh_slope
from fits import const_pairs_and_singles, error_line, fit, float32, pair


def items():
    factor = 2 / LN2
    first = sum(pair(factor))
    yield const_pairs_and_singles(
        "LOG2", lambda t: factor * atanh(t), lambda t: 1 / factor, 0, Z, 4, 3,
        "2·log2(e)·atanh(s)/s in s², relative to its first coefficient.", leading=[first],
    )
    c, err = fit(lambda t: factor * atanh_slope(t), lambda t: 1 / factor, 0, Z, ["single"] * 3)
    line = ", ".join(map(float32, c))
    yield f"/// Its derivative.\n{error_line(err)}pub const LOG2_SLOPE: [f32; 3] = [{line}];\n"
