# The CUDA compiler and the tools that tests use, as cache variables:
#
#   IKET_NVCC          from PATH, CUDA_HOME, /usr/local/cuda, else what tools/setup installed
#   IKET_CUDA_INCLUDE  its include folder (cuda.h; needed to build, never to run)
#   IKET_CUDA_LIB      its library folder (libcudart_static.a)
#   IKET_NVDISASM      of tests only: the referee for machine code; pinned, from tools/setup
#   IKET_CUOBJDUMP     of tests only; the same
#   IKET_PYTHON        the interpreter of build/toolchain with perfetto's protobuf classes
set(toolchain "${PROJECT_SOURCE_DIR}/build/toolchain")
file(GLOB wheels "${toolchain}/lib/python3.*/site-packages/nvidia/cu13")

find_program(IKET_NVCC nvcc DOC "The CUDA compiler")
find_program(IKET_NVCC nvcc NO_DEFAULT_PATH
             PATHS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin "${wheels}/bin")
find_program(IKET_NVDISASM nvdisasm NO_DEFAULT_PATH PATHS "${wheels}/bin")
find_program(IKET_CUOBJDUMP cuobjdump NO_DEFAULT_PATH PATHS "${wheels}/bin")
find_program(IKET_PYTHON python3 NO_DEFAULT_PATH PATHS "${toolchain}/bin")
foreach(tool IN ITEMS NVCC NVDISASM CUOBJDUMP PYTHON)
  if(NOT IKET_${tool})
    message(FATAL_ERROR "${tool} was not found: run tools/setup, which installs what is missing "
                        "(or set IKET_${tool})")
  endif()
endforeach()

file(REAL_PATH "${IKET_NVCC}" nvcc)
get_filename_component(cuda "${nvcc}" DIRECTORY)
get_filename_component(cuda "${cuda}" DIRECTORY)
find_path(IKET_CUDA_INCLUDE cuda.h REQUIRED NO_DEFAULT_PATH
          PATHS "${cuda}/include" "${cuda}/targets/x86_64-linux/include")
find_path(IKET_CUDA_LIB libcudart_static.a REQUIRED NO_DEFAULT_PATH
          PATHS "${cuda}/lib64" "${cuda}/lib" "${cuda}/targets/x86_64-linux/lib")
