#!/usr/bin/env bash
# Installs the Debian packages that are missing, and makes the runtime that cay-host is linked with
# (static_runtime.sh). Does nothing, and asks nothing of the network, when all is there.
#
#   scripts/setup.sh run    what it takes to build and run Cay
#   scripts/setup.sh test   the same, and what the tests need
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_packages=(
  clang-19 lld-19 llvm-19 libstdc++-12-dev
  libboost1.81-dev libgtest-dev libgmock-dev libbenchmark-dev libssl-dev libsqlite3-dev libcli11-dev
  cmake ninja-build ccache curl python3 git
)
# What a hub uses: networks of jobs, images of registries.
run_packages=(nftables slirp4netns skopeo zstd)
test_packages=(
  clang-tidy-19 clang-format-19 libclang-rt-19-dev shellcheck
  python3-venv ca-certificates bubblewrap busybox-static wrk docker-registry fish runc
)
# For a small cay-host; it can be built without.
runtime_packages=(musl-dev libclang-rt-19-dev xz-utils)

# So that names below localhost resolve; without it, clients go through the hub's proxy.
name_packages=(libnss-myhostname)

case ${1:-} in
  run) wanted=("${build_packages[@]}" "${run_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${run_packages[@]}" "${test_packages[@]}") ;;
  *) die "usage: scripts/setup.sh run|test" ;;
esac

# install PACKAGE...: those that are missing. False when that cannot be done.
install() {
  local package state missing=() began=$SECONDS
  for package in "$@"; do
    # A package that dpkg has never heard of makes dpkg-query fail, which is the same as missing.
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    if [[ $state != installed ]]; then missing+=("$package"); fi
  done
  if ((${#missing[@]} == 0)); then return 0; fi

  if ! command -v apt-get >/dev/null; then
    announce "these are missing and this is not a Debian system, so please install them yourself: ${missing[*]}"
    return 1
  fi
  if ((EUID != 0)); then
    announce "these packages are missing: ${missing[*]}"
    announce "install them as root:  apt-get install ${missing[*]}"
    return 1
  fi

  announce "setup: installing ${#missing[@]} packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  quietly "$CAY_ROOT/build/setup/update.log" "${apt[@]}" update || return
  quietly "$CAY_ROOT/build/setup/install.log" "${apt[@]}" install --no-install-recommends "${missing[@]}" || return
  announce "setup: packages installed in $((SECONDS - began)) s"
}

install "${wanted[@]}" || exit 1
if ! getent ahosts x--1.cay.localhost >/dev/null && ! install "${name_packages[@]}"; then
  announce "setup: without libnss-myhostname, names below localhost do not resolve; 'cay env' names a proxy instead"
fi
if ! install "${runtime_packages[@]}" || ! "$CAY_ROOT/scripts/static_runtime.sh"; then
  announce "setup: without musl and a C++ library for it, cay-host is linked with glibc and becomes larger"
fi
