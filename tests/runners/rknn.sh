#!/usr/bin/env bash
# Installs Rockchip's toolkit with its simulator of the NPU, for tests of `caffeforge verify --runner`.
#
#   tests/runners/rknn.sh PYTHON [DIR]     afterwards: DIR/bin/python tests/runners/rknn.py ...
#
# PYTHON is an interpreter of 3.11 that has torch, which the toolkit imports: it is used from there, not installed again.
# Does nothing when DIR is complete.
set -euo pipefail

python=${1:?the interpreter that has torch}
dir=${2:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/rknn}

complete() { "$dir/bin/python" -I -c 'import rknn.api' >/dev/null 2>&1; }

! complete || exit 0
mkdir -p "$(dirname "$dir")"
"$python" -m venv --clear "$dir"
"$dir/bin/python" -m pip install --quiet --no-deps rknn-toolkit2==2.5.0 numpy==1.26.4 onnx==1.16.1 \
  onnxruntime==1.18.1 opencv-python-headless==4.11.0.86 protobuf==4.25.4 flatbuffers==25.2.10 psutil==7.0.0
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
site "$python" >"$(site "$dir/bin/python")/zz_torch.pth"
complete
