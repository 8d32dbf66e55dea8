#!/usr/bin/env python3
"""Times PyTorch on the cases of `ulpian bench`, for comparison in the same run.

    peer_torch.py --device cpu --threads 1 --case matmul:1024 --case add --case mlp

Prints one JSON object a line: first {"peer": "torch", "version": ..., "device": ...}, then per case
{"case", "dtype", "median_ms", "best_ms", "repeats", "bytes", "flops"}; a case that cannot run gives {"case", "error"}.
`bytes` is what the case must move at least, `flops` what it must compute, both 0 where that says nothing.

Cases: fn:NAME:DTYPE (an elementary function over --elements values), copy, add, exp, sum (over --elements values), matmul:N (square), matvec:N, mlp (one SGD step of 784-128-10 at
batch 64: forward, mean cross entropy, backward, update). All f32 into memory that exists already; products in true f32
(TF32 is off).
"""

import argparse
import json
import statistics
import sys
import time

import torch


UNIT, POSITIVE = (-0.999, 1.998), (0.01, 8.0)
RANGES = {
    **dict.fromkeys(["asin", "acos", "atanh", "erfinv"], UNIT),
    **dict.fromkeys(["log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "digamma", "pow", "xlogy"], POSITIVE),
    "log1p": (-0.9, 8.0),
    "acosh": (1.0, 8.0),
}
TWO_PLACE = {"div", "pow", "atan2", "hypot", "fmod", "remainder", "logaddexp", "xlogy"}


def function_of(name):
    """A function (x, y, out) of PyTorch's for ours, writing into `out` where PyTorch can; None where it has none."""
    aten = torch.ops.aten
    into = {
        "gelu": (aten.gelu, {"approximate": "none"}),
        "gelu_tanh": (aten.gelu, {"approximate": "tanh"}),
        "silu": (aten.silu, {}),
        "mish": (aten.mish, {}),
        "elu": (aten.elu, {}),
        "softplus": (aten.softplus, {}),
        "logsigmoid": (aten.log_sigmoid, {}),
    }
    if name in into:
        op, options = into[name]
        return lambda x, y, out: op.out(x, **options, out=out)
    if name in ("selu", "celu"):
        op = getattr(torch.nn.functional, name)
        return lambda x, y, out: op(x)
    op = getattr(torch, name, None)
    if op is None:
        return None
    if name in TWO_PLACE:
        return lambda x, y, out: op(x, y, out=out)
    return lambda x, y, out: op(x, out=out)


def make_case(name, device, elements):
    """Returns (function of no arguments, bytes, flops)."""
    kind, _, size = name.partition(":")
    generator = torch.Generator().manual_seed(1)

    def random(*shape):
        return torch.randn(*shape, generator=generator).to(device)

    if kind == "fn":
        name, _, dtype = size.partition(":")
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}[dtype or "f32"]
        low, width = RANGES.get(name, (-4.0, 8.0))
        x = (torch.rand(elements, generator=generator) * width + low).to(dtype).to(device)
        y = (torch.rand(elements, generator=generator) * width + low).to(dtype).to(device)
        out = torch.zeros_like(x)
        function = function_of(name)
        if function is None:
            raise ValueError(f"PyTorch has no {name}")
        moved = (3 if name in TWO_PLACE else 2) * x.element_size() * elements
        return lambda: function(x, y, out), moved, 0
    if kind in ("copy", "add", "exp", "sum"):
        if size:
            raise ValueError(f"case {name}: its size is --elements")
        x = random(elements)
        if kind == "sum":
            out = torch.empty((), device=device)
            return lambda: torch.sum(x, dim=0, out=out), 4 * elements, elements
        out = torch.zeros_like(x)
        if kind == "copy":
            return lambda: out.copy_(x), 8 * elements, 0
        if kind == "exp":
            return lambda: torch.exp(x, out=out), 8 * elements, 0
        y = random(elements)
        return lambda: torch.add(x, y, out=out), 12 * elements, elements
    if kind in ("matmul", "matvec"):
        n = int(size)
        a = random(n, n)
        b = random(n, n) if kind == "matmul" else random(n)
        out = torch.zeros_like(b)
        if kind == "matmul":
            return lambda: torch.mm(a, b, out=out), 12 * n * n, 2 * n**3
        return lambda: torch.mv(a, b, out=out), 4 * (n * n + 2 * n), 2 * n * n
    if kind == "mlp" and not size:
        model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(device)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
        x = random(64, 784)
        labels = torch.randint(0, 10, (64,), generator=generator).to(device)

        def step():
            optimiser.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(x), labels).backward()
            optimiser.step()

        # Forward, and backward without the gradient of the images.
        return step, 0, 2 * 64 * (2 * 784 * 128 + 3 * 128 * 10)
    raise ValueError(f"case {name}: wanted copy, add, exp, sum, matmul:N, matvec:N or mlp")


def measure(step, device, repeats, warm_seconds):
    """Milliseconds of each repeat, after a warm-up that also wakes an idle GPU's clock."""
    cuda = device.type == "cuda"

    def wait():
        if cuda:
            torch.cuda.synchronize(device)

    # Short cases are timed several at a time, so that neither the clock nor a launch's wait counts.
    step()
    wait()
    end = time.perf_counter() + warm_seconds
    runs = 0
    start = time.perf_counter()
    while time.perf_counter() < end or runs < 3:
        step()
        runs += 1
        if runs % 16 == 0:
            wait()
    wait()
    once = (time.perf_counter() - start) / runs
    inner = max(1, min(1000, int(0.002 / once)))
    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        for _ in range(inner):
            step()
        wait()
        times.append((time.perf_counter() - start) / inner * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    parser.add_argument("--elements", type=int, default=16 << 20)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--warm-seconds", type=float, default=0.3)
    parser.add_argument("--case", action="append", dest="cases", default=[], metavar="CASE")
    args = parser.parse_args()
    if min(args.threads, args.elements, args.repeats) < 1:
        parser.error("threads, elements and repeats are at least 1")
    if not args.cases:
        args.cases = ["copy", "add", "sum", "exp", "matmul:1024", "matvec:4096", "mlp"]
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("this PyTorch sees no CUDA device")
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device(args.device)
    where = torch.cuda.get_device_name(0) if args.device == "cuda" else f"cpu, {args.threads} threads"
    print(json.dumps({"peer": "torch", "version": torch.__version__, "device": where}), flush=True)

    failed = False
    for case in args.cases:
        try:
            step, size, flops = make_case(case, device, args.elements)
            times = measure(step, device, args.repeats, args.warm_seconds)
        except (ValueError, RuntimeError) as error:
            print(json.dumps({"case": case, "error": str(error)}), flush=True)
            failed = True
            continue
        line = {
            "case": case,
            "dtype": "f32",
            "median_ms": statistics.median(times),
            "best_ms": min(times),
            "repeats": args.repeats,
            "bytes": size,
            "flops": flops,
        }
        print(json.dumps(line), flush=True)
        del step
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
