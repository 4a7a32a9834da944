# The CUDA compiler and the tools that tests use, as cache variables:
#
#   IKET_NVCC          from PATH, CUDA_HOME, /usr/local/cuda, else what tools/setup installed
#   IKET_CUDA_ROOT     the folder of its toolkit, links and wrapper scripts followed
#   IKET_CUDA_INCLUDE  its include folder (cuda.h; needed to build, never to run)
#   IKET_CUDA_LIB      its library folder (libcudart_static.a)
#   IKET_NVDISASM      of tests only: the referee for machine code; pinned, from tools/setup
#   IKET_CUOBJDUMP     of tests only; the same
#   IKET_CCCL          of tests only: headers of CUB with annotations, from tools/setup; may be missing
#   IKET_PYTHON        the interpreter of build/toolchain with perfetto's protobuf classes
set(toolchain "${PROJECT_SOURCE_DIR}/build/toolchain")
file(GLOB wheels "${toolchain}/lib/python3.*/site-packages/nvidia/cu13")

# The root of the toolkit that a compiler belongs to, by its own word (nvcc may be a wrapper script
# anywhere); empty if it does not run.
function(iket_cuda_root variable nvcc)
  execute_process(COMMAND "${nvcc}" --dryrun -x cu /dev/null
                  OUTPUT_QUIET ERROR_VARIABLE words RESULT_VARIABLE failed)
  set(${variable} "" PARENT_SCOPE)
  if(NOT failed AND words MATCHES "#\\$ TOP=([^\n]+)\n")
    file(REAL_PATH "${CMAKE_MATCH_1}" root)
    set(${variable} "${root}" PARENT_SCOPE)
  endif()
endfunction()

# What was found before may be gone: tools/setup rebuilds its folder when the machine changes.
foreach(found IN ITEMS NVCC CUDA_INCLUDE CUDA_LIB NVDISASM CUOBJDUMP CCCL PYTHON)
  if(IKET_${found} AND NOT EXISTS "${IKET_${found}}")
    message(STATUS "IKET_${found}: ${IKET_${found}} is gone, looking again")
    unset(IKET_${found} CACHE)
  endif()
endforeach()

set(candidates "${IKET_NVCC}")
if(NOT IKET_NVCC)
  find_program(on_path nvcc NO_CACHE)
  set(candidates "${on_path}" "$ENV{CUDA_HOME}/bin/nvcc" /usr/local/cuda/bin/nvcc "${wheels}/bin/nvcc")
endif()
foreach(nvcc IN LISTS candidates)
  if(EXISTS "${nvcc}")
    iket_cuda_root(IKET_CUDA_ROOT "${nvcc}")
    if(IKET_CUDA_ROOT)
      set(IKET_NVCC "${nvcc}" CACHE FILEPATH "The CUDA compiler; empty: look for one")
      break()
    endif()
  endif()
endforeach()
if(NOT IKET_CUDA_ROOT)
  message(FATAL_ERROR "No CUDA compiler among '${candidates}' runs: run tools/setup, which installs "
                      "what is missing (or set IKET_NVCC)")
endif()

find_program(IKET_NVDISASM nvdisasm NO_DEFAULT_PATH PATHS "${wheels}/bin")
find_program(IKET_CUOBJDUMP cuobjdump NO_DEFAULT_PATH PATHS "${wheels}/bin")
find_program(IKET_PYTHON python3 NO_DEFAULT_PATH PATHS "${toolchain}/bin")
foreach(tool IN ITEMS NVDISASM CUOBJDUMP PYTHON)
  if(NOT IKET_${tool})
    message(FATAL_ERROR "${tool} was not found: run tools/setup, which installs what is missing "
                        "(or set IKET_${tool})")
  endif()
endforeach()

find_path(IKET_CUDA_INCLUDE cuda.h REQUIRED NO_DEFAULT_PATH
          PATHS "${IKET_CUDA_ROOT}/include" "${IKET_CUDA_ROOT}/targets/x86_64-linux/include")
find_path(IKET_CUDA_LIB libcudart_static.a REQUIRED NO_DEFAULT_PATH
          PATHS "${IKET_CUDA_ROOT}/lib64" "${IKET_CUDA_ROOT}/lib" "${IKET_CUDA_ROOT}/targets/x86_64-linux/lib")

find_path(IKET_CCCL cub/detail/iket_support.cuh NO_DEFAULT_PATH PATHS "${PROJECT_SOURCE_DIR}/build/cccl/include")
mark_as_advanced(IKET_CCCL)
