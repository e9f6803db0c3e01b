#!/usr/bin/env bash
# Puts PPQ 0.6.6 (SenseTime's open quantizer), which reads and runs nets of its Caffe, where tests/e2e/test_ppq.py looks.
#
#   tests/runners/ppq.sh [DIR]     afterwards: python tests/runners/ppq_nets.py DIR FOLDER
#
# Python alone, run by the interpreter of the tests: it takes their torch, onnx and numpy, and brings tqdm along.
# Does nothing when DIR is complete.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/ppq}

[ ! -e "$dir/ppq/parser/caffe_parser.py" ] || [ ! -e "$dir/tqdm/__init__.py" ] || exit 0
mkdir -p "$dir"
python -m pip install --quiet --no-deps --target "$dir" ppq==0.6.6 tqdm
