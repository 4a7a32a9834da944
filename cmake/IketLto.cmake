# What links the code that -dlto leaves in objects: nvlink loads libnvvm.so from the folder nvvm/lib64 beside its
# own, and NVIDIA's wheels have it elsewhere, under another name.
#
# IKET_NVVM      folder that has lib64/libnvvm.so
# IKET_NVCC_LTO  nvcc whose nvlink finds it
set(iket_toolkit "${IKET_CUDA_ROOT}")
find_file(iket_libnvvm NAMES libnvvm.so libnvvm.so.4 REQUIRED NO_CACHE NO_DEFAULT_PATH
          PATHS "${iket_toolkit}/nvvm/lib64" "${IKET_CUDA_LIB}" "${iket_toolkit}/lib64" "${iket_toolkit}/lib")
set(IKET_NVVM "${iket_toolkit}/nvvm")
set(IKET_NVCC_LTO "${IKET_NVCC}")
if(NOT iket_libnvvm STREQUAL "${IKET_NVVM}/lib64/libnvvm.so")
  # A folder of links that looks like a toolkit.
  set(iket_linked "${PROJECT_BINARY_DIR}/toolkit_for_lto")
  set(IKET_NVVM "${iket_linked}/nvvm")
  set(IKET_NVCC_LTO "${iket_linked}/bin/nvcc")
  file(MAKE_DIRECTORY "${iket_linked}/bin" "${IKET_NVVM}/lib64")
  file(CREATE_LINK "${iket_libnvvm}" "${IKET_NVVM}/lib64/libnvvm.so" SYMBOLIC)
  file(GLOB iket_parts RELATIVE "${iket_toolkit}" "${iket_toolkit}/*" "${iket_toolkit}/bin/*" "${iket_toolkit}/nvvm/*")
  foreach(part IN LISTS iket_parts)
    if(NOT EXISTS "${iket_linked}/${part}")
      file(CREATE_LINK "${iket_toolkit}/${part}" "${iket_linked}/${part}" SYMBOLIC)
    endif()
  endforeach()
endif()
