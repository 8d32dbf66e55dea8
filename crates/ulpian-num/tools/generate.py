#!/usr/bin/env python3
"""Writes src/functions/constants/*.rs: one file for each module in families/.

python3 generate.py [FAMILY...] writes, python3 generate.py --check [FAMILY...] compares and exits 1 on a difference.
Needs mpmath and rustfmt.
"""
import importlib
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "src" / "functions" / "constants"


def text(family):
    module = importlib.import_module(f"families.{family}")
    head = f"//! {module.__doc__.strip()}\n//!\n//! Written by `tools/generate.py {family}`; change the generator, not this file.\n\n"
    body = head + "\n".join(module.items())
    run = subprocess.run(
        ["rustfmt", "--edition", "2024", "--config-path", str(HERE.parents[2])],
        input=body, capture_output=True, text=True, check=True,
    )
    return run.stdout


def main():
    sys.path.insert(0, str(HERE))
    args = [a for a in sys.argv[1:] if a != "--check"]
    names = args or sorted(p.stem for p in (HERE / "families").glob("*.py") if p.stem != "__init__")
    stale = []
    for name in names:
        path, new = OUT / f"{name}.rs", text(name)
        if "--check" in sys.argv:
            stale += [] if path.exists() and path.read_text() == new else [name]
        else:
            path.write_text(new)
    if stale:
        sys.exit(f"differs from what the generator writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
