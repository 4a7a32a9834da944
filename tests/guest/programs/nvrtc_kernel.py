"""NVRTC and the driver through ctypes, as bindings without compiled code do: functions come from dlsym.

Ends with 77 and says so where there is no NVRTC 12.5 or later.
"""

import ctypes
import glob
import os
import site
import sys

import marked_source as kernel


def nvrtc():
    roots = site.getsitepackages() + [site.getusersitepackages()]
    places = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
    for root in roots:
        places += sorted(glob.glob(f"{root}/nvidia/**/libnvrtc.so.1[23]", recursive=True))
    for place in places:
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) >= (12, 5):
            return library
    print("no NVRTC 12.5 or later")
    sys.exit(77)


def good(result, what):
    if result != 0:
        print(f"{what}: {result}")
        sys.exit(1)


def compile_cubin():
    library = nvrtc()
    program = ctypes.c_void_p()
    good(library.nvrtcCreateProgram(ctypes.byref(program), kernel.SOURCE.encode(), b"guest.cu", 0,
                                    None, None), "nvrtcCreateProgram")
    options = ["-std=c++20", "-arch=sm_90", "-DIKET_ENABLE", f"-I{os.environ['IKET_GUEST_INCLUDE']}"]
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    good(library.nvrtcCompileProgram(program, len(options), words), "nvrtcCompileProgram")
    size = ctypes.c_size_t()
    good(library.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    cubin = ctypes.create_string_buffer(size.value)
    good(library.nvrtcGetCUBIN(program, cubin), "nvrtcGetCUBIN")
    return cubin


def main():
    cubin = compile_cubin()
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    out = ctypes.c_uint64()
    words = (ctypes.c_uint32 * (kernel.BLOCKS * kernel.THREADS))()
    size = ctypes.c_size_t(ctypes.sizeof(words))
    good(driver.cuInit(0), "cuInit")
    good(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    good(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    good(driver.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
    good(driver.cuModuleGetFunction(ctypes.byref(function), module, b"Run"), "cuModuleGetFunction")
    good(driver.cuMemAlloc_v2(ctypes.byref(out), size), "cuMemAlloc_v2")
    count = ctypes.c_uint32(kernel.ROUNDS)
    pointers = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in (out, count)]
    arguments = (ctypes.c_void_p * 2)(*pointers)
    good(driver.cuLaunchKernel(function, kernel.BLOCKS, 1, 1, kernel.THREADS, 1, 1, 0, None,
                               arguments, None), "cuLaunchKernel")
    good(driver.cuCtxSynchronize(), "cuCtxSynchronize")
    good(driver.cuMemcpyDtoH_v2(words, out, size), "cuMemcpyDtoH_v2")
    print(sum(words))


main()
