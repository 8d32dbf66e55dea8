#!/usr/bin/env python3
"""The greatest error of every f32 function, ours beside PyTorch's, NumPy's and JAX's on the CPU, over the same arguments.

    cargo run --release -p ulpian-verify --example accuracy 4099 FOLDER
    scripts/accuracy_peers.py FOLDER

Prints a table: errors in units of the last place of the exact value, and in brackets the share of results that are not
the nearest float, in percent. `-`: the peer has no such function in f32. Arguments and values below 2^-126 are left
out, since not everybody keeps them; an infinity counts as 2^128, and one where the value is finite and an exponent
away, or a NaN where the value is a number, is an error of `inf`. Values that overflow must give infinity.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch

TINY = 2.0**-126
RECORD = np.dtype([("x", "<f4"), ("ours", "<f4"), ("nearest", "<f4"), ("", "<f4"), ("exact", "<f8")])
F = torch.nn.functional

TORCH = {
    "logsigmoid": F.logsigmoid, "softplus": lambda x: F.softplus(x, threshold=1e9), "silu": F.silu, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "mish": F.mish, "elu": F.elu, "celu": F.celu, "selu": F.selu,
    "cbrt": None, "exp10": None, "sinpi": None, "cospi": None,
}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
JAX = {
    "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus, "logsigmoid": jax.nn.log_sigmoid, "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False), "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "mish": jax.nn.mish, "elu": jax.nn.elu, "celu": jax.nn.celu, "selu": jax.nn.selu, "erf": jax.lax.erf, "erfc": jax.lax.erfc,
    "erfinv": jax.lax.erf_inv, "lgamma": jax.lax.lgamma, "digamma": jax.lax.digamma, "rsqrt": jax.lax.rsqrt,
}


def with_torch(name, x):
    op = TORCH[name] if name in TORCH else getattr(torch, name, None)
    return None if op is None else op(torch.from_numpy(x)).numpy()


def with_numpy(name, x):
    if name == "reciprocal":
        return np.reciprocal(x)
    op = getattr(np, NUMPY.get(name, name), None)
    return None if not isinstance(op, np.ufunc) else op(x)


def with_jax(name, x):
    op = JAX.get(name) or getattr(jnp, name, None) or getattr(jax.lax, name, None)
    return None if op is None else np.asarray(jax.jit(op)(x))


def cell(y, exact, nearest):
    """Greatest error, and share not nearest."""
    if y is None:
        return "-"
    e = np.maximum(np.floor(np.log2(np.abs(exact))), -126)
    y = y.astype(np.float64)
    # In f64: 2^128 is an infinity in f32.
    held = np.where(np.isinf(y), np.copysign(2.0**128, y), y)
    error = np.abs(held - np.clip(exact, -(2.0**128), 2.0**128)) / np.exp2(np.minimum(e, 127) - 23)
    error = np.where(np.isnan(y) | (np.isinf(y) & (np.abs(exact) < 2.0**127)), np.inf, error)
    worst = error.max()
    share = 100 * np.mean(y != nearest)
    # Up to 0.5 nothing is rounded up: the digits are cut.
    shown = "inf" if np.isinf(worst) else f"{np.floor(worst * 1000) / 1000:.3f}" if worst < 100 else f"{worst:.3g}"
    return f"{shown} ({share:.2g})"


def main():
    folder = pathlib.Path(sys.argv[1])
    print(f"torch {torch.__version__}, NumPy {np.__version__}, JAX {jax.__version__}, all on the CPU\n")
    print("| function | ulpian | PyTorch | NumPy | JAX |\n| --- | --- | --- | --- | --- |")
    np.seterr(all="ignore")
    for path in sorted(folder.glob("*.bin")):
        data = np.fromfile(path, RECORD)
        x, ours, nearest, exact = data["x"].copy(), data["ours"], data["nearest"], data["exact"]
        with np.errstate(all="ignore"):
            keep = np.isfinite(x) & (np.abs(x) >= TINY) & ~np.isnan(exact) & (np.abs(exact) >= TINY)
            rows = [ours] + [peer(path.stem, x) for peer in (with_torch, with_numpy, with_jax)]
            cells = [cell(None if y is None else y[keep], exact[keep], nearest[keep]) for y in rows]
        print(f"| {path.stem} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
