# cay_room(<name> [USES room ...] [ASIO] [NATIVE])
#
# One library per folder below src/, named cay::<name>, of all its .cc files, and one test program
# <name>_test of those that end in _test.cc.
# ASIO: the room's sources see Asio, so they share its precompiled header (a coroutine file costs
# 10-25 s to compile without it).
#
# With the small static runtime (musl.cmake) a second library cay_<name>_musl comes beside it, for cay-host
# alone. NATIVE: not for this room, which cay-host does not use.

# cay_asio_header(<suffix>): the precompiled header that libraries with this suffix share.
function(cay_asio_header suffix)
  add_library(cay_asio_pch${suffix} OBJECT ${PROJECT_SOURCE_DIR}/cmake/asio_pch.cc)
  target_link_libraries(cay_asio_pch${suffix} PRIVATE cay_flags${suffix})
  target_precompile_headers(cay_asio_pch${suffix} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/asio_pch.h)
endfunction()

# Uses what cay_room has parsed.
function(cay_room_library suffix)
  add_library(cay_${name}${suffix} STATIC ${ROOM_SOURCES})
  target_link_libraries(cay_${name}${suffix} PUBLIC cay_flags${suffix})
  foreach(other ${ROOM_USES})
    target_link_libraries(cay_${name}${suffix} PUBLIC cay_${other}${suffix})
  endforeach()
  if(ROOM_ASIO)
    target_precompile_headers(cay_${name}${suffix} REUSE_FROM cay_asio_pch${suffix})
  endif()
endfunction()

cay_asio_header("")
if(CAY_MUSL)
  cay_asio_header(_musl)
  set_target_properties(cay_asio_pch_musl PROPERTIES EXCLUDE_FROM_ALL ON EXPORT_COMPILE_COMMANDS OFF)
endif()

function(cay_room name)
  cmake_parse_arguments(ROOM "ASIO;NATIVE" "" "USES" ${ARGN})
  file(GLOB ROOM_SOURCES CONFIGURE_DEPENDS *.cc)
  set(ROOM_TESTS ${ROOM_SOURCES})
  list(FILTER ROOM_SOURCES EXCLUDE REGEX "_test\\.cc$")
  list(FILTER ROOM_TESTS INCLUDE REGEX "_test\\.cc$")
  cay_room_library("")
  add_library(cay::${name} ALIAS cay_${name})
  if(CAY_MUSL AND NOT ROOM_NATIVE)
    cay_room_library(_musl)
    # clang-tidy reads the list of commands, and should see each source once.
    set_target_properties(cay_${name}_musl PROPERTIES EXCLUDE_FROM_ALL ON EXPORT_COMPILE_COMMANDS OFF)
  endif()
  if(ROOM_TESTS)
    add_executable(${name}_test ${ROOM_TESTS})
    target_link_libraries(${name}_test PRIVATE cay::${name} GTest::gmock GTest::gtest_main
                                               Threads::Threads)
    if(ROOM_ASIO)
      target_precompile_headers(${name}_test REUSE_FROM cay_asio_pch)
    endif()
    add_test(NAME ${name}_test COMMAND ${name}_test)
  endif()
endfunction()
