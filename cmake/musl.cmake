# The small static runtime: musl and LLVM's C++ library, from the folder that scripts/static_runtime.sh
# makes. The release build's cay-host is made with it, where it is there; what is tested with sanitizers,
# fuzzed or analysed has the system's libraries. The compiler is the same, so flags are all it takes.
set(default_root $ENV{XDG_CACHE_HOME})
if(NOT default_root)
  set(default_root $ENV{HOME}/.cache)
endif()
set(CAY_MUSL_ROOT ${default_root}/cay/musl-19.1.7 CACHE PATH "The folder that scripts/static_runtime.sh makes")

set(CAY_MUSL OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CAY_SANITIZE)
  if(EXISTS ${CAY_MUSL_ROOT}/complete)
    set(CAY_MUSL ON)
    # Should it go away or change, this must be decided again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CAY_MUSL_ROOT}/complete)
  else()
    message(STATUS "cay-host is linked with glibc: ${CAY_MUSL_ROOT} is not there (scripts/static_runtime.sh)")
  endif()
endif()

if(CAY_MUSL)
  set(target --target=${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-musl --sysroot=${CAY_MUSL_ROOT})
  add_library(cay_flags_musl INTERFACE)
  target_link_libraries(cay_flags_musl INTERFACE cay_flags)
  target_compile_options(
    cay_flags_musl
    INTERFACE
    ${target}
    # Named, because clang prefers a libc++ that is installed beside it, and that one is for glibc.
    -nostdinc++
    "SHELL:-isystem ${CAY_MUSL_ROOT}/usr/include/c++/v1"
    # Boost puts names of its headers into the program; the builder's home should not be in there.
    -fmacro-prefix-map=${CAY_MUSL_ROOT}/=/)
  target_link_options(
    cay_flags_musl
    INTERFACE
    ${target}
    -stdlib=libc++
    --rtlib=compiler-rt
    --unwindlib=libunwind
    # Threads get as much stack as with glibc, not 128 KiB.
    -Wl,-z,stack-size=8388608)
endif()
