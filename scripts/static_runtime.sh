#!/usr/bin/env bash
# Makes what cay-host is linked with in the release build, once for each user: musl, which Debian has, and
# LLVM's C++ library for it, which Debian has only as source. A static glibc and libstdc++ would add 0.9 MB.
# Does nothing when it is there. Takes about a minute and 160 MB from the network, of which 14 MB stay.
#
#   CAY_MUSL_ROOT     where it goes (default: see static_runtime_dir in common.sh)
#   CAY_LLVM_SOURCE   where the source comes from, for machines with a mirror of their own
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

source_name=llvm-toolchain-19_$CAY_LLVM_VERSION.orig.tar.xz
source_url=${CAY_LLVM_SOURCE:-http://deb.debian.org/debian/pool/main/l/llvm-toolchain-19/$source_name}
source_sha256=ae498f3bc58ae2d9f64ef5f0c035c4240152bf015a5b7738b15c22e93bdc97ce
arch=$(uname -m)

root=$(static_runtime_dir)
# Whoever changes this script gets a new runtime.
recipe=$(sha256sum "${BASH_SOURCE[0]}" | cut -d ' ' -f 1)
if [[ -f $root/complete && $(<"$root/complete") == "$recipe" ]]; then exit 0; fi

logs=$CAY_ROOT/build/setup
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Debian's downloader drops its rights before it writes.
chmod 755 "$work"

# apt's own downloader, since it knows the machine's proxies; it compares the checksum too.
announce "setup: fetching the source of LLVM's C++ library (160 MB)"
quietly "$logs/runtime-fetch.log" /usr/lib/apt/apt-helper -o Acquire::Retries=2 -o Acquire::http::Timeout=30 \
  download-file "$source_url" "$work/llvm.tar.xz" "SHA256:$source_sha256"
mkdir "$work/source"
quietly "$logs/runtime-unpack.log" tar -xJf "$work/llvm.tar.xz" -C "$work/source" --strip-components=1 \
  --wildcards --no-wildcards-match-slash --exclude='*/*/test' --exclude='*/*/benchmarks' \
  '*/cmake' '*/runtimes' '*/libcxx' '*/libcxxabi' '*/libunwind' '*/llvm/cmake'
rm "$work/llvm.tar.xz"

# A root that has musl's headers and the kernel's, and Boost's, but nothing of glibc.
sys=$work/root
mkdir -p "$sys/usr/include" "$sys/usr/lib"
ln -s "/usr/include/$arch-linux-musl/"* /usr/include/{linux,asm-generic,mtd,boost} "$sys/usr/include/"
ln -s "/usr/include/$arch-linux-gnu/asm" "$sys/usr/include/asm"
ln -s "/usr/lib/$arch-linux-musl/"* "$sys/usr/lib/"

announce "setup: building LLVM's C++ library for musl"
options=(
  -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_SYSROOT="$sys"
  # Programs cannot be linked before there is a library.
  -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY
  -DCMAKE_AR=/usr/bin/llvm-ar-19
  -DCMAKE_RANLIB=/usr/bin/llvm-ranlib-19
  -DCMAKE_INSTALL_PREFIX="$sys/usr"
  '-DLLVM_ENABLE_RUNTIMES=libunwind;libcxxabi;libcxx'
  -DLLVM_ENABLE_PER_TARGET_RUNTIME_DIR=OFF
  -DLLVM_INCLUDE_TESTS=OFF
  -DLLVM_INCLUDE_DOCS=OFF
  -DLIBUNWIND_ENABLE_SHARED=OFF
  -DLIBUNWIND_ENABLE_ASSERTIONS=OFF
  -DLIBUNWIND_HIDE_SYMBOLS=ON
  -DLIBUNWIND_USE_COMPILER_RT=ON
  -DLIBUNWIND_INCLUDE_TESTS=OFF
  -DLIBCXXABI_ENABLE_SHARED=OFF
  -DLIBCXXABI_ENABLE_ASSERTIONS=OFF
  -DLIBCXXABI_HERMETIC_STATIC_LIBRARY=ON
  -DLIBCXXABI_USE_LLVM_UNWINDER=ON
  -DLIBCXXABI_USE_COMPILER_RT=ON
  -DLIBCXXABI_INCLUDE_TESTS=OFF
  # The last words of an uncaught exception would bring a name demangler along.
  -DLIBCXXABI_SILENT_TERMINATE=ON
  -DLIBCXX_ENABLE_SHARED=OFF
  -DLIBCXX_ENABLE_STATIC_ABI_LIBRARY=ON
  -DLIBCXX_HERMETIC_STATIC_LIBRARY=ON
  -DLIBCXX_HAS_MUSL_LIBC=ON
  -DLIBCXX_CXX_ABI=libcxxabi
  -DLIBCXX_USE_COMPILER_RT=ON
  -DLIBCXX_ABI_UNSTABLE=ON
  -DLIBCXX_INSTALL_MODULES=OFF
  -DLIBCXX_INCLUDE_TESTS=OFF
  -DLIBCXX_INCLUDE_BENCHMARKS=OFF
  -DLIBCXX_INCLUDE_DOCS=OFF
)
for language in C CXX ASM; do
  compiler=clang-19
  if [[ $language == CXX ]]; then compiler=clang++-19; fi
  options+=(
    "-DCMAKE_${language}_COMPILER=$compiler"
    "-DCMAKE_${language}_COMPILER_TARGET=$arch-linux-musl"
    # The library names its sources in messages; where they lay here is nobody's business.
    "-DCMAKE_${language}_FLAGS=-ffunction-sections -fdata-sections -fmacro-prefix-map=$work/source/="
    "-DCMAKE_${language}_FLAGS_RELEASE=-O2 -DNDEBUG"
  )
done
quietly "$logs/runtime-configure.log" cmake -G Ninja -S "$work/source/runtimes" -B "$work/build" "${options[@]}"
quietly "$logs/runtime-build.log" cmake --build "$work/build" --parallel "$(compile_jobs)" --target install

printf '%s\n' "$recipe" >"$sys/complete"
rm -rf "$root"
mv -T "$sys" "$root"
announce "setup: $root made in $SECONDS s"
