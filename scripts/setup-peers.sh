#!/usr/bin/env bash
# Makes .venv with what `ulpian bench` measures itself against: PyTorch, NumPy, JAX and safetensors for Python.
# PyTorch's wheel brings the CUDA libraries and takes about 5.5 GB of disk; nothing outside .venv is changed.
#
#   scripts/setup-peers.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
python3 -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)' 2>/dev/null ||
  { echo "setup-peers.sh: needs Python 3.10 or newer with venv (apt install python3-venv)" >&2; exit 1; }
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy safetensors jax==0.10.2
.venv/bin/python -c 'import torch; print("torch", torch.__version__, "in .venv, CUDA", torch.cuda.is_available())'
