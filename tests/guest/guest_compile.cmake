# guest_compile(<output> <source> <nvcc options>...): by nvcc, with the folder's `flags`; the output goes onto its
# list `made`.
include(IketLto)
function(guest_compile output source)
  get_filename_component(name "${output}" NAME)
  set(nvcc "${IKET_NVCC}")
  if("-dlto" IN_LIST ARGN)
    set(nvcc "${IKET_NVCC_LTO}")
  endif()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${nvcc}" ${flags} ${ARGN} -MD -MF "${name}.d" -o "${output}" "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
    DEPFILE "${name}.d"
    DEPENDS "${source}" iket_older_glibc COMMENT "Building guest ${name}" VERBATIM)
  set(made ${made} "${output}" PARENT_SCOPE)
endfunction()
