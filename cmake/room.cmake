# cay_room(<name> [USES room ...] [ASIO])
#
# One library per folder below src/, named cay::<name>, of all its .cc files, and one test program
# <name>_test of those that end in _test.cc.
# ASIO: the room's sources see Asio, so they share its precompiled header (a coroutine file costs
# 10-25 s to compile without it).
add_library(cay_asio_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/asio_pch.cc)
target_link_libraries(cay_asio_pch PRIVATE cay_flags)
target_precompile_headers(cay_asio_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/asio_pch.h)

function(cay_room name)
  cmake_parse_arguments(ROOM "ASIO" "" "USES" ${ARGN})
  file(GLOB ROOM_SOURCES CONFIGURE_DEPENDS *.cc)
  set(ROOM_TESTS ${ROOM_SOURCES})
  list(FILTER ROOM_SOURCES EXCLUDE REGEX "_test\\.cc$")
  list(FILTER ROOM_TESTS INCLUDE REGEX "_test\\.cc$")
  add_library(cay_${name} STATIC ${ROOM_SOURCES})
  add_library(cay::${name} ALIAS cay_${name})
  target_link_libraries(cay_${name} PUBLIC cay_flags)
  foreach(other ${ROOM_USES})
    target_link_libraries(cay_${name} PUBLIC cay::${other})
  endforeach()
  if(ROOM_ASIO)
    target_precompile_headers(cay_${name} REUSE_FROM cay_asio_pch)
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
