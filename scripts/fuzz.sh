#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz for some time, starting from its corpus in fuzz/corpus/<name>.
#
#   scripts/fuzz.sh [SECONDS] [NAME...]     default: 180 s each, all of them
#
# New inputs go to build/fuzz/corpus/<name>, inputs that break something to build/fuzz/found, and what each says to
# build/fuzz/logs/<name>.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$CAY_ROOT"

seconds=${1:-180}
if (($# > 0)); then shift; fi
names=("$@")
if ((${#names[@]} == 0)); then
  for program in build/fuzz/bin/*_fuzz; do
    [[ -x $program ]] || die "no fuzzers in build/fuzz/bin: build the preset 'fuzz' first"
    names+=("$(basename "$program")")
  done
fi

mkdir -p build/fuzz/found build/fuzz/logs

# fuzz NAME: one fuzzer, its output in a log.
fuzz() {
  local name=$1 seeds=() folder
  mkdir -p "build/fuzz/corpus/$name"
  for folder in "fuzz/corpus/$name" "fuzz/corpus/${name%_fuzz}"; do
    if [[ -d $folder ]]; then seeds+=("$folder"); fi
  done
  "build/fuzz/bin/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" "${seeds[@]}" >"build/fuzz/logs/$name" 2>&1
}

# finish_first: waits for the oldest that still runs, and shows what it found.
finish_first() {
  local name=${running[0]} result=0
  running=("${running[@]:1}")
  wait "${jobs[$name]}" || result=$?
  echo "== $name, $seconds s, exit status $result"
  tail -n "$((result == 0 ? 8 : 80))" "build/fuzz/logs/$name"
  if ((result != 0)); then status=1; fi
}

# As many at a time as there are cores.
status=0
running=()
declare -A jobs
for name in "${names[@]}"; do
  if ((${#running[@]} >= $(nproc))); then finish_first; fi
  fuzz "$name" &
  jobs[$name]=$!
  running+=("$name")
done
while ((${#running[@]} > 0)); do finish_first; done
exit "$status"
