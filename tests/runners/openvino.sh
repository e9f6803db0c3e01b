#!/usr/bin/env bash
# Installs OpenVINO 2024.6 with its model optimizer, the last that read Caffe's nets, for tests/e2e/test_openvino.py.
#
#   tests/runners/openvino.sh [DIR]     afterwards: DIR/bin/python tests/runners/openvino_nets.py FOLDER
#
# Needs Python 3.10, from the PATH or from pyenv. Does nothing when DIR is complete.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/openvino}

complete() { "$dir/bin/python" -I -c 'from openvino.tools.mo import convert_model' >/dev/null 2>&1; }

candidates() {
  printf '%s\n' python3.10
  ! command -v pyenv >/dev/null || printf '%s\n' "$(pyenv root)"/versions/3.10.*/bin/python
}

! complete || exit 0
while read -r python; do
  "$python" -c 'import sys, venv, ensurepip; assert sys.version_info[:2] == (3, 10)' 2>/dev/null || continue
  mkdir -p "$(dirname "$dir")"
  "$python" -m venv --clear "$dir"
  "$dir/bin/python" -m pip install --quiet openvino-dev==2024.6.0 'protobuf<4' 'numpy<2'
  # It would send reports of use.
  "$dir/bin/python" -m pip uninstall --quiet --yes openvino-telemetry
  complete
  exit 0
done < <(candidates)
echo 'openvino: needs Python 3.10 with venv; none runs here' >&2
exit 1
