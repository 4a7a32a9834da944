# Installs the device headers of BUILD into a fresh folder, builds the consumer against them with
# find_package, and asks pkg-config for the same folder. Needs BUILD, WORK, GENERATOR and NVCC.
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/prefix")

function(must)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE out)
  set(out "${out}" PARENT_SCOPE)
endfunction()

must("${CMAKE_COMMAND}" --install "${BUILD}" --component device --prefix "${prefix}")
must("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build"
     "-DCMAKE_PREFIX_PATH=${prefix}" "-DNVCC=${NVCC}")
must("${CMAKE_COMMAND}" --build "${WORK}/build")

file(READ "${WORK}/build/consumer.cubin" magic LIMIT 4 HEX)
if(NOT magic STREQUAL "7f454c46")
  message(FATAL_ERROR "consumer.cubin is no ELF file: it starts with ${magic}")
endif()

set(ENV{PKG_CONFIG_PATH} "${prefix}/lib/pkgconfig")
must(pkg-config --cflags-only-I iket)
string(REGEX REPLACE "^-I| *\n$" "" include "${out}")
if(NOT EXISTS "${include}/iket/iket.cuh")
  message(FATAL_ERROR "pkg-config says '${out}', where there is no iket/iket.cuh")
endif()
