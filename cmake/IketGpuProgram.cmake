# iket_gpu_program(<name> <folder> [SOURCE <file>] [LIBRARIES <nvcc options>...])
#
# Builds bin/<folder>/<name> from <name>.cu, or that file, with marks on, for sm_90, with everything but glibc and
# the driver linked in; `make dist` packs it. nvcc is called directly, as for the examples.
function(iket_gpu_program name folder)
  cmake_parse_arguments(PROGRAM "" "SOURCE" "LIBRARIES" ${ARGN})
  if(NOT PROGRAM_SOURCE)
    set(PROGRAM_SOURCE "${name}.cu")
  endif()
  set(programs "${PROJECT_BINARY_DIR}/bin/${folder}")
  file(MAKE_DIRECTORY "${programs}")
  set(program "${programs}/${name}")
  add_custom_command(
    OUTPUT "${program}"
    COMMAND "${IKET_NVCC}" -std=c++20 -O3 -DIKET_ENABLE "-I${PROJECT_SOURCE_DIR}/include"
            "-I${PROJECT_SOURCE_DIR}/bench" "-gencode=arch=compute_90,code=sm_90"
            -Xcompiler=-Wall,-Wextra --Werror=all-warnings -cudart static "-L${IKET_CUDA_LIB}"
            ${PROGRAM_LIBRARIES} ${IKET_NVCC_RUNTIME} -MD -MF "${name}.d" -o "${program}" "${CMAKE_CURRENT_SOURCE_DIR}/${PROGRAM_SOURCE}"
    DEPFILE "${name}.d"
    DEPENDS "${PROGRAM_SOURCE}" iket_older_glibc COMMENT "Building ${name}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${program}")
  install(PROGRAMS "${program}" DESTINATION "${CMAKE_INSTALL_BINDIR}/${folder}")
endfunction()
