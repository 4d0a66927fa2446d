#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz for some time, starting from its corpus in fuzz/corpus/<name>.
#
#   scripts/fuzz.sh [SECONDS] [NAME...]     default: 180 s each, all of them
#
# New inputs go to build/fuzz/corpus/<name>, inputs that break something to build/fuzz/found.
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

mkdir -p build/fuzz/found
status=0
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  seeds=()
  for folder in "fuzz/corpus/$name" "fuzz/corpus/${name%_fuzz}"; do
    if [[ -d $folder ]]; then seeds+=("$folder"); fi
  done
  echo "== $name, $seconds s"
  "build/fuzz/bin/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" "${seeds[@]}" || status=1
done
exit "$status"
