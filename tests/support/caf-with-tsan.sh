#!/bin/bash
# Builds CAF's core from Debian's source package with ThreadSanitizer: caf-with-tsan.sh DIRECTORY
#
# Debian's library is not instrumented, so ThreadSanitizer sees no mailbox and reports every message and every floating
# actor's state as a race. Suppressing those would hide ours. With this library there is nothing to suppress:
#
#   meson setup build-tsan -Db_sanitize=thread -Db_lundef=false -Dbuildtype=debugoptimized
#   tests/support/caf-with-tsan.sh "$PWD/build-tsan/caf"
#   LD_LIBRARY_PATH=$PWD/build-tsan/caf meson test -C build-tsan
#
# The headers stay those of libcaf-dev, so the versions must agree. Needs g++ and apt; JOBS compilers at once (default 1).
# With SOURCE=FILE a tarball that is there already is used.
set -euo pipefail
out=${1:?usage: caf-with-tsan.sh DIRECTORY}
version=$(dpkg-query -W -f '${Version}' libcaf-dev)
upstream=${version%%-*}
mkdir -p "$out/apt/lists/partial" "$out/objects"
cd "$out"
if [ ! -d source ]; then
  if [ -z "${SOURCE:-}" ]; then
    # Lists of its own: the machine's sources need not name source packages, and are not touched.
    . /etc/os-release
    echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" > apt/sources.list
    options=(-o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
      -o "Dir::State::lists=$PWD/apt/lists")
    apt-get "${options[@]}" -qq update
    apt-get "${options[@]}" -qq source --download-only --tar-only actor-framework
    SOURCE=$(ls "actor-framework_$upstream.orig.tar."*)
  fi
  mkdir source.part
  tar -xf "$SOURCE" -C source.part --strip-components=1
  mv source.part source
fi
cd source/libcaf_core
export out
compile() {
  local object
  object="$out/objects/$(echo "$1" | tr / _).o"
  # shellcheck disable=SC2086 # CXX may be "ccache g++"
  [ -s "$object" ] || ${CXX:-g++} -std=c++17 -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread -fPIC -w -I. \
    -c "$1" -o "$object.part" && mv "$object.part" "$object" 2>/dev/null || [ -s "$object" ]
}
export -f compile
find src -name '*.cpp' -print0 | xargs -0 -n 1 -P "${JOBS:-1}" bash -c 'compile "$0"'
soname=$(basename "$(readlink -f /usr/lib/*/libcaf_core.so)")
"${LINKER:-g++}" -shared -fsanitize=thread -Wl,-soname,"$soname" -o "$out/$soname" "$out"/objects/*.o -pthread
echo "$out/$soname"
