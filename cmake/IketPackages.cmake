# Third-party libraries, one target each; a room names those that it uses in its DEPS.
#
#   iket::fmt  CLI11::CLI11  iket::expected  iket::json  iket::deflate  iket::zlib  iket::zstd  iket::lz4
#   iket::sqlite
#
# The compressors and SQLite are the static archives, since programs of iket depend on glibc alone.
# tools/setup installs all of them.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
if(IKET_TESTS OR IKET_FUZZ)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# iket_static_package(<name> HEADER <file> ARCHIVE <file>): target iket::<name> of a static archive.
function(iket_static_package name)
  cmake_parse_arguments(PACKAGE "" "HEADER;ARCHIVE" "" ${ARGN})
  string(TOUPPER "IKET_${name}" variable)
  find_path(${variable}_INCLUDE "${PACKAGE_HEADER}" REQUIRED)
  find_library(${variable}_ARCHIVE "${PACKAGE_ARCHIVE}" REQUIRED)
  mark_as_advanced(${variable}_INCLUDE ${variable}_ARCHIVE)
  add_library(iket::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(iket::${name} PROPERTIES
    IMPORTED_LOCATION "${${variable}_ARCHIVE}"
    INTERFACE_INCLUDE_DIRECTORIES "${${variable}_INCLUDE}")
endfunction()
iket_static_package(deflate HEADER libdeflate.h ARCHIVE libdeflate.a)
iket_static_package(zlib HEADER zlib.h ARCHIVE libz.a)
iket_static_package(zstd HEADER zstd.h ARCHIVE libzstd.a)
iket_static_package(lz4 HEADER lz4.h ARCHIVE liblz4.a)
iket_static_package(sqlite HEADER sqlite3.h ARCHIVE libsqlite3.a)
target_link_libraries(iket::sqlite INTERFACE ${CMAKE_DL_LIBS} m pthread)

find_path(IKET_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
mark_as_advanced(IKET_EXPECTED_INCLUDE)
add_library(iket::expected INTERFACE IMPORTED GLOBAL)
target_include_directories(iket::expected SYSTEM INTERFACE "${IKET_EXPECTED_INCLUDE}")

# nlohmann's, for its parser that walks a stream.
find_path(IKET_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
mark_as_advanced(IKET_JSON_INCLUDE)
add_library(iket::json INTERFACE IMPORTED GLOBAL)
target_include_directories(iket::json SYSTEM INTERFACE "${IKET_JSON_INCLUDE}")

# Compiled once where fmt_once.cpp knows what that takes, else by every source that includes it.
if(fmt_VERSION MATCHES "^9\\.")
  add_library(iket_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt_once.cpp")
  get_target_property(iket_fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(iket_fmt SYSTEM PUBLIC "${iket_fmt_include}")
  target_compile_features(iket_fmt PUBLIC cxx_std_20)
  set_target_properties(iket_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_library(iket::fmt ALIAS iket_fmt)
else()
  add_library(iket::fmt ALIAS fmt::fmt-header-only)
endif()
