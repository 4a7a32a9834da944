# iket_room(<name> [SOURCES <files>...] DEPS <rooms and libraries>... [TESTS <files>...]
#           [TEST_DEPS <rooms and libraries>...])
#
# One room of the house: a static library `iket_<name>` (alias `iket::<name>`) made of SOURCES, and
# one test program `<name>_test` made of TESTS. A test file is `x_test.cpp` beside `x.cpp`; TEST_DEPS
# is what the tests alone need.
#
# A room may include headers of the rooms named in DEPS, and of those that these are built on, as
# "room/file.h". The include root of a room is a folder that holds a link to the room and nothing
# else, so an include along an arrow that nobody declared does not compile (tests/cmake shows it).
# Data flows one way: DEPS may name only rooms that src/CMakeLists.txt added before.
function(iket_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room ${name}: what is '${ROOM_UNPARSED_ARGUMENTS}'?")
  endif()
  foreach(dep IN LISTS ROOM_DEPS)
    if(dep MATCHES "^iket::" AND NOT TARGET ${dep})
      message(FATAL_ERROR "room ${name} may not use ${dep}: data flows one way, and ${dep} does not "
                          "come before it in src/CMakeLists.txt")
    endif()
  endforeach()

  set(root "${PROJECT_BINARY_DIR}/rooms/${name}")
  file(MAKE_DIRECTORY "${root}")
  if(NOT EXISTS "${root}/${name}")
    file(CREATE_LINK "${CMAKE_CURRENT_SOURCE_DIR}" "${root}/${name}" SYMBOLIC)
  endif()

  if(ROOM_SOURCES)
    add_library(iket_${name} STATIC ${ROOM_SOURCES})
    target_include_directories(iket_${name} PUBLIC "${root}")
    target_link_libraries(iket_${name} PRIVATE iket_options PUBLIC ${ROOM_DEPS})
  else()
    add_library(iket_${name} INTERFACE)
    target_include_directories(iket_${name} INTERFACE "${root}")
    target_link_libraries(iket_${name} INTERFACE ${ROOM_DEPS})
  endif()
  add_library(iket::${name} ALIAS iket_${name})

  if(IKET_TESTS AND ROOM_TESTS)
    add_executable(${name}_test ${ROOM_TESTS})
    target_link_libraries(${name}_test PRIVATE iket_options iket::${name} ${ROOM_TEST_DEPS}
                                               GTest::gmock GTest::gtest_main)
    # What is tested is optimised in full; the tests themselves run as fast and compile in less time.
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    target_compile_definitions(${name}_test PRIVATE IKET_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                    IKET_BINARY_DIR="${PROJECT_BINARY_DIR}"
                                                    IKET_NVCC="${IKET_NVCC}"
                                                    IKET_NVDISASM="${IKET_NVDISASM}"
                                                    IKET_CUOBJDUMP="${IKET_CUOBJDUMP}"
                                                    IKET_PYTHON="${IKET_PYTHON}")
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# iket_rooms_included(<variable> <source>): the targets of the rooms whose headers a source of fuzz/
# or bench/ includes, so that such a file needs no list of its own.
function(iket_rooms_included variable source)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(STRINGS "${source}" includes REGEX "^#include \"[a-z]+/")
  list(TRANSFORM includes REPLACE "^#include \"([a-z]+)/.*" "iket::\\1")
  list(REMOVE_DUPLICATES includes)
  set(${variable} "${includes}" PARENT_SCOPE)
endfunction()
