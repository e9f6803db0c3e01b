#!/usr/bin/env bash
# Installs a vendor's Caffe for the tests to compare with: the pycaffe in the wheel tpu_mlir 1.30.2 (Sophgo), which is
# Caffe with ceil_mode, Clip and many layers of the community: Upsample, Interp, ReLU6, Reorg, ShuffleChannel ...
#
#   tests/real_caffe/sophgo.sh [DIR]     afterwards: DIR/bin/caffe-python -c 'import caffe'
#
# Needs Python 3.10, from the PATH or from pyenv, and 2 GB of disk while it works, 1 GB afterwards. Does nothing when
# DIR is complete.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/sophgo_caffe}

complete() { "$dir/bin/caffe-python" -I -c 'import caffe' >/dev/null 2>&1; }

candidates() {
  printf '%s\n' python3.10
  ! command -v pyenv >/dev/null || printf '%s\n' "$(pyenv root)"/versions/3.10.*/bin/python
}

! complete || exit 0
while read -r python; do
  "$python" -c 'import sys, venv, ensurepip; assert sys.version_info[:2] == (3, 10)' 2>/dev/null || continue
  mkdir -p "$(dirname "$dir")"
  "$python" -m venv --clear "$dir"
  "$dir/bin/python" -m pip install --quiet numpy==1.24.3 protobuf==3.20.3 scikit-image==0.21.0 six
  "$dir/bin/python" -m pip install --quiet --no-deps tpu_mlir==1.30.2
  site=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  # Of the wheel only Caffe and the libraries that it links are wanted.
  find "$site/tpu_mlir" -mindepth 1 -maxdepth 1 ! -name lib ! -name python -exec rm -r {} +
  find "$site/tpu_mlir/python" -mindepth 1 -maxdepth 1 ! -name caffe -exec rm -r {} +
  echo "$site/tpu_mlir/python" >"$site/caffe.pth"
  # The libraries come from the wheel, not from the system.
  printf '#!/bin/sh\nexec env LD_LIBRARY_PATH="%s" "%s" "$@"\n' "$site/tpu_mlir/lib" "$dir/bin/python" \
    >"$dir/bin/caffe-python"
  chmod +x "$dir/bin/caffe-python"
  GLOG_minloglevel=2 "$dir/bin/caffe-python" -I -c 'import caffe; print(len(caffe.layer_type_list()), "layer types")'
  exit 0
done < <(candidates)
echo 'sophgo_caffe: needs Python 3.10 with venv (the wheel is built for it); none runs here' >&2
exit 1
