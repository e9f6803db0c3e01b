#!/usr/bin/env bash
# Installs a second, independent Caffe for the tests to compare with: the wheel kendryte-caffe 1.0.0.20210829, which is
# BVLC Caffe of 2020 (with Swish and the round_mode of Pooling) plus Permute, Reverse and CTC.
#
#   tests/real_caffe/kendryte.sh [DIR]     afterwards: DIR/bin/python -c 'import caffe'
#
# Needs Python 3.8 or 3.9, from the PATH or from pyenv. Does nothing when DIR is complete.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/kendryte_caffe}

complete() { "$dir/bin/python" -I -c 'import caffe' >/dev/null 2>&1; }

candidates() {
  printf '%s\n' python3.9 python3.8
  ! command -v pyenv >/dev/null || printf '%s\n' "$(pyenv root)"/versions/3.[98].*/bin/python
}

! complete || exit 0
while read -r python; do
  "$python" -c 'import sys, venv, ensurepip; assert sys.version_info[:2] in ((3, 8), (3, 9))' 2>/dev/null || continue
  mkdir -p "$(dirname "$dir")"
  "$python" -m venv --clear "$dir"
  "$dir/bin/python" -m pip install --quiet kendryte-caffe==1.0.0.20210829 protobuf==3.20.3 numpy==1.24.4
  GLOG_minloglevel=2 "$dir/bin/python" -I -c 'import caffe; print(len(caffe.layer_type_list()), "layer types")'
  exit 0
done < <(candidates)
echo 'kendryte_caffe: needs Python 3.8 or 3.9 with venv (kendryte-caffe has wheels for no newer one); none runs here' >&2
exit 1
