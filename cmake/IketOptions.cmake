# Compiler settings shared by every room, and the switches of the build.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The build tree has the shape of the installed one, so that bin/iket finds ../lib/libiket_inject.so
# in both.
set(CMAKE_INSTALL_LIBDIR "lib" CACHE STRING "Folder of libraries under the prefix")
include(GNUInstallDirs)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

option(IKET_WERROR "Treat warnings as errors" ON)
option(IKET_EXAMPLES "Build the examples" ON)
option(IKET_TESTS "Build the tests" ON)
option(IKET_BENCH "Build the benchmarks" ON)
option(IKET_FUZZ "Build fuzz/: replays of the seeds, or fuzzers with IKET_LIBFUZZER" ON)
option(IKET_LIBFUZZER "Make real fuzzers of fuzz/ (Clang); every room is instrumented" OFF)
option(IKET_STATIC_RUNTIME "Link libstdc++ and libgcc statically" ON)
set(IKET_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined")

add_library(iket_older_glibc STATIC "${CMAKE_CURRENT_LIST_DIR}/older_glibc.c")
# The same for what nvcc links.
set(IKET_NVCC_RUNTIME -Xcompiler=-static-libstdc++ -Xcompiler=-static-libgcc
                      -Xlinker=--undefined=iket_older_glibc $<TARGET_FILE:iket_older_glibc>)

add_library(iket_options INTERFACE)
target_compile_options(iket_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
                                              -Wno-sign-conversion
                                              $<$<BOOL:${IKET_WERROR}>:-Werror>)
# std::stable_sort of libstdc++ 12 calls what it has itself deprecated; GCC knows, Clang does not.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(iket_options INTERFACE -Wno-deprecated-declarations)
endif()
if(IKET_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "IKET_LIBFUZZER needs Clang; use the preset: cmake --preset fuzz")
  endif()
  target_compile_options(iket_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(IKET_SANITIZE)
  target_compile_options(iket_options INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:IKET_UNSANITIZED>>>:-fsanitize=${IKET_SANITIZE}>
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(iket_options INTERFACE -fsanitize=${IKET_SANITIZE})
  # GCC 12 sees uninitialized values in its own std::regex once it is instrumented.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(iket_options INTERFACE -Wno-maybe-uninitialized)
  endif()
elseif(IKET_STATIC_RUNTIME)
  # What `make dist` packs must run on another Linux with nothing but glibc, of 2.34 or newer.
  target_link_options(iket_options INTERFACE -static-libstdc++ -static-libgcc
                                             -Wl,--undefined=iket_older_glibc)
  target_link_libraries(iket_options INTERFACE iket_older_glibc)
endif()

# For the tests: a sanitized collector is preloaded in front of the sanitizer's runtime, which is fine,
# and the software device may be without ThreadSanitizer.
if(IKET_SANITIZE)
  set(options "${PROJECT_BINARY_DIR}/sanitizer_options.cmake")
  file(CONFIGURE OUTPUT "${options}" CONTENT [[
set(ENV{ASAN_OPTIONS} verify_asan_link_order=0)
set(ENV{TSAN_OPTIONS} ignore_noninstrumented_modules=1)
]])
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY TEST_INCLUDE_FILES "${options}")
endif()

# Of a folder whose targets ThreadSanitizer must leave alone: the threads of a simulated kernel share
# memory as its author wanted, and not as C++ does. Call it last.
function(iket_no_thread_sanitizer)
  if(IKET_SANITIZE STREQUAL "thread")
    get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
    set_property(TARGET ${targets} PROPERTY IKET_UNSANITIZED TRUE)
  endif()
endfunction()
