# Flags that every target shares.
add_library(cay_flags INTERFACE)
target_compile_options(cay_flags INTERFACE -Wall -Wextra -fno-omit-frame-pointer -ffunction-sections
                                           -fdata-sections)
target_compile_definitions(
  cay_flags
  INTERFACE CAY_VERSION="${PROJECT_VERSION}"
            # One copy of Asio and JSON for the whole program (src/net/asio_impl.cc, src/base/json_impl.cc).
            BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
            # Asio looks for glibc to find it out; without it timers would be as coarse as epoll_wait.
            BOOST_ASIO_HAS_TIMERFD=1)
# -iquote, not -I: the room `sys` must not shadow the system's <sys/socket.h> and its like.
target_compile_options(cay_flags INTERFACE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src")
target_include_directories(cay_flags SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  # cay-host is copied into every job, so it should be small; but -Os and -Oz cost the path of a command
  # some 50 us. Less inlining and no loop tricks give most of the size and nearly all of the speed.
  target_compile_options(cay_flags INTERFACE -fno-vectorize -fno-slp-vectorize -fno-unroll-loops
                                             "SHELL:-mllvm -inline-threshold=25")
endif()

if(CAY_SANITIZE)
  target_compile_options(cay_flags INTERFACE -fsanitize=${CAY_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(cay_flags INTERFACE -fsanitize=${CAY_SANITIZE})
endif()
if(CAY_FUZZ)
  target_compile_options(cay_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_link_options(cay_flags INTERFACE -fuse-ld=lld -Wl,--gc-sections)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
  # A time stamp inside the precompiled header would make every cached object look stale.
  add_compile_options(-Xclang -fno-pch-timestamp)
endif()
