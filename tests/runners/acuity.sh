#!/usr/bin/env bash
# Installs VeriSilicon's acuitylite (MIT), which reads Caffe's nets and runs them, for tests/e2e/test_acuity.py.
#
#   tests/runners/acuity.sh [DIR]     afterwards: DIR/bin/python tests/runners/acuity_nets.py FOLDER
#
# Needs Python 3.10, from the PATH or from pyenv, and 2 GB. Does nothing when DIR is complete.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/acuity}

candidates() {
  printf '%s\n' python3.10
  ! command -v pyenv >/dev/null || printf '%s\n' "$(pyenv root)"/versions/3.10.*/bin/python
}

[ ! -e "$dir/complete" ] || exit 0
while read -r python; do
  "$python" -c 'import sys, venv, ensurepip; assert sys.version_info[:2] == (3, 10)' 2>/dev/null || continue
  mkdir -p "$(dirname "$dir")"
  "$python" -m venv --clear "$dir"
  # What it names as its own needs is older than Python 3.10, or larger.
  "$dir/bin/python" -m pip install --quiet --no-deps acuitylite==6.27.0
  "$dir/bin/python" -m pip install --quiet tensorflow-cpu==2.17.0 numpy==1.26.4 dill==0.2.8.2 networkx==3.3 \
    onnx==1.16.2 onnxoptimizer==0.3.13 ply==3.11 protobuf==3.20.3 ruamel.yaml==0.17.40 scipy==1.14.1 lmdb
  touch "$dir/complete"
  exit 0
done < <(candidates)
echo 'acuity: needs Python 3.10 with venv; none runs here' >&2
exit 1
