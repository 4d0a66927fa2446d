#!/usr/bin/env bash
# Installs the Debian packages that are missing. Does nothing, and asks nothing of the network, when all
# are there.
#
#   scripts/setup.sh build   what it takes to build and run cay-host
#   scripts/setup.sh test    the same, and what the tests need
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_packages=(
  clang-19 lld-19 llvm-19 libstdc++-12-dev
  libboost1.81-dev libgtest-dev libgmock-dev libbenchmark-dev
  cmake ninja-build ccache curl python3 git
)
test_packages=(
  clang-tidy-19 clang-format-19 libclang-rt-19-dev shellcheck
  python3-venv ca-certificates bubblewrap busybox-static wrk
)

case ${1:-} in
  build) wanted=("${build_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  *) die "usage: scripts/setup.sh build|test" ;;
esac

missing=()
for package in "${wanted[@]}"; do
  # A package that dpkg has never heard of makes dpkg-query fail, which is the same as missing.
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [[ $state != installed ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then exit 0; fi

if ! command -v apt-get >/dev/null; then
  die "these are missing and this is not a Debian system, so please install them yourself: ${missing[*]}"
fi
if ((EUID != 0)); then
  announce "these packages are missing: ${missing[*]}"
  die "install them as root:  apt-get install ${missing[*]}"
fi

announce "setup: installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
quietly "$CAY_ROOT/build/setup/update.log" "${apt[@]}" update
quietly "$CAY_ROOT/build/setup/install.log" "${apt[@]}" install --no-install-recommends "${missing[@]}"
announce "setup: done in $SECONDS s"
