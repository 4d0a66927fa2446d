# shellcheck shell=bash
# What run, test and the scripts beside this file share. Sourced, never run.
#
# `announce` prints one line about what happens now. `quietly` runs a command with its output kept in a
# log, and shows the end of that log only when the command fails.

CAY_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CAY_ROOT

# The version of LLVM whose C++ library scripts/static_runtime.sh builds.
CAY_LLVM_VERSION=19.1.7

# Where the C and C++ library of the release build's cay-host lie.
static_runtime_dir() {
  echo "${CAY_MUSL_ROOT:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cay/musl-$CAY_LLVM_VERSION}"
}

announce() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# quietly LOG COMMAND...
quietly() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then return 0; fi
  announce "failed: $*"
  tail -n 40 "$log" >&2
  announce "the whole log: $log"
  return "$status"
}

# A number of compile jobs that fits the machine: a coroutine source needs up to 1 GB.
compile_jobs() {
  local cores memory_kb by_memory
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  by_memory=$((memory_kb / 1000000))
  if ((by_memory < 1)); then by_memory=1; fi
  if ((by_memory < cores)); then echo "$by_memory"; else echo "$cores"; fi
}

# build_preset PRESET [TARGET...]: configures where needed and builds; everything without a target.
build_preset() {
  local preset=$1 dir=$CAY_ROOT/build
  shift
  if [[ $preset != release ]]; then dir=$CAY_ROOT/build/$preset; fi
  (
    cd "$CAY_ROOT" || exit
    # Once more when the static runtime has come since, for CMake to find it.
    if [[ ! -f $dir/build.ninja || $(static_runtime_dir)/complete -nt $dir/build.ninja ]]; then
      cmake --preset "$preset" "-DCAY_MUSL_ROOT=$(static_runtime_dir)" || exit
    fi
    if (($# == 0)); then set -- all; fi
    cmake --build "$dir" --parallel "$(compile_jobs)" --target "$@"
  )
}
