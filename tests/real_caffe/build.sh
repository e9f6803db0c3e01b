#!/usr/bin/env bash
# Builds Caffe, CPU only, with its Python module, for the tests to compare with: BVLC Caffe 1.0 plus the layers of
# SSD and a few others, from the PyPI sdist brocolli-caffe 9.0.2.
#
#   tests/real_caffe/build.sh [DIR]     afterwards: DIR/python/bin/python -c 'import caffe'
#
# Takes six minutes on two cores, and nothing when DIR is complete. An interrupted build is taken up where it stopped.
# For Debian 12 and systems like it: needs a Python whose version Boost.Python is packaged for. Missing system packages
# are installed with apt-get, as root or with sudo.
set -euo pipefail

dir=${1:-${CAFFEFORGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caffeforge}/real_caffe}
sdist=brocolli-caffe-9.0.2.tar.gz
sdist_sha256=c6410cc60bdd6db685d441b66be7df05410f8850ac88d6b75d48ef9b2315c08a
packages=(
  g++ make protobuf-compiler libprotobuf-dev libboost-system-dev libboost-thread-dev libboost-filesystem-dev
  libboost-regex-dev libboost-python-dev libgflags-dev libgoogle-glog-dev libhdf5-dev libopenblas-dev
)

say() { echo "real_caffe: $*" >&2; }
fail() { say "$*"; exit 1; }
complete() { "$dir/python/bin/python" -I -c 'import caffe' >/dev/null 2>&1; }

install_packages() {
  local missing=() name
  command -v dpkg-query >/dev/null || fail "this is not a Debian-like system; it would need: ${packages[*]}"
  for name in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "neither root nor sudo; let an administrator install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installs ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Boost.Python is packaged for one Python only: 3.11 in Debian 12.
find_boost_python() {
  local library
  library=$(/sbin/ldconfig -p | grep -o 'libboost_python3[0-9]*\.so$' | sort -u | head -n 1) || true
  [ -n "$library" ] || fail 'libboost-python-dev brought no libboost_python3*.so'
  library=${library#lib}
  boost_python=${library%.so}
  python=python3.${boost_python#boost_python3}
  "$python" -c '' 2>/dev/null || fail "Boost.Python is packaged for $python, which does not run here; please install it"
}

make_environment() {
  "$python" -m venv --clear "$dir/python"
  "$dir/python/bin/python" -m pip install --quiet \
    numpy==1.26.4 protobuf==3.20.3 scikit-image==0.26.0 six==1.17.0 setuptools
}

unpack_source() {
  [ ! -e "$dir/src/unpacked" ] || return 0
  "$dir/python/bin/python" -m pip download --quiet --no-deps --no-binary :all: -d "$dir" brocolli-caffe==9.0.2
  echo "$sdist_sha256  $dir/$sdist" | sha256sum --check --quiet || fail "$dir/$sdist is not the file known to work"
  rm -rf "$dir/src"
  mkdir "$dir/src"
  tar xzf "$dir/$sdist" -C "$dir/src" --strip-components=1
  cd "$dir/src"
  rm -f include/caffe/proto/caffe.pb.h src/caffe/proto/caffe.pb.cc
  mkdir -p include/caffe/proto
  protoc -Isrc/caffe/proto --cpp_out=include/caffe/proto --python_out=python/caffe/proto src/caffe/proto/caffe.proto
  mv include/caffe/proto/caffe.pb.cc src/caffe/proto/
  sed -i 's,#include "caffe.pb.h",#include "caffe/proto/caffe.pb.h",' src/caffe/proto/caffe.pb.cc
  touch unpacked
}

# Every file is written beside its place and renamed, so that what exists is whole.
write_makefile() {
  local include_python include_numpy
  include_python=$("$dir/python/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  include_numpy=$("$dir/python/bin/python" -c 'import numpy; print(numpy.get_include())')
  [ -e "$include_python/Python.h" ] || fail "$include_python/Python.h is missing; please install $python-dev"
  cat >"$dir/src/build.mk" <<MK
SRCS := \$(wildcard src/caffe/*.cpp src/caffe/layers/*.cpp src/caffe/util/*.cpp src/caffe/solvers/*.cpp src/caffe/3rdparty/*.cpp) src/caffe/proto/caffe.pb.cc
OBJS := \$(SRCS:%=obj/%.o)
CXXFLAGS := -O2 -fPIC -std=c++14 -w -DCPU_ONLY -DCAFFE_VERSION=1.0.0 -Iinclude -I/usr/include/hdf5/serial
BOOST := -lboost_system -lboost_thread -lboost_filesystem -lboost_regex

python/caffe/_caffe.so: python/caffe/libcaffe.so
	g++ \$(CXXFLAGS) -I'$include_python' -I'$include_numpy' -shared python/caffe/_caffe.cpp -o \$@.part -Lpython/caffe -lcaffe -Wl,-rpath,'\$\$ORIGIN' -l$boost_python \$(BOOST) -lprotobuf -lglog
	mv \$@.part \$@
python/caffe/libcaffe.so: \$(OBJS)
	g++ -shared -o \$@.part \$(OBJS) -lprotobuf -lglog -lgflags \$(BOOST) -lopenblas -lpthread -lhdf5_serial_hl -lhdf5_serial
	mv \$@.part \$@
obj/%.o: %
	@mkdir -p \$(dir \$@)
	g++ \$(CXXFLAGS) -c \$< -o \$@.part
	mv \$@.part \$@
MK
}

! complete || exit 0
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9 # another build of the same folder: wait for it
! complete || exit 0

install_packages
find_boost_python
make_environment
unpack_source
write_makefile
say "compiles in $dir (log: build.log)"
make -C "$dir/src" -f build.mk -j"$(nproc)" >"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log" >&2; fail 'does not compile'; }
echo "$dir/src/python" >"$("$dir/python/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/caffe.pth"
GLOG_minloglevel=2 "$dir/python/bin/python" -I -c 'import caffe; print(len(caffe.layer_type_list()), "layer types")'
