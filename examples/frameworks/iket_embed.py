"""A Python program that traces itself: iket/embed.h by ctypes. One file to copy; for notebooks, and for whoever
compiles kernels to a cubin in memory.

    tracer = iket_embed.Tracer()
    image = tracer.patch(cubin)              # load image.data with whatever loads cubins
    ...
    image.bind(module)                       # the CUmodule, as an integer, before its first launch
    tracer.launching(function, grid, block)  # optional: the launch gets its number, shape and time
    ...
    tracer.write("step.iketcap")             # waits for the kernels; then: iket report step.iketcap

Under `iket profile` images are patched when the driver loads them: patch() gives the original then, and all of this
changes nothing.
"""

import ctypes
import os
import shutil


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("library", ctypes.c_char_p), ("folder", ctypes.c_char_p),
                ("ring_bytes", ctypes.c_uint64), ("memory_bytes", ctypes.c_uint64), ("selection", ctypes.c_char_p),
                ("flight", ctypes.c_int)]


class LaunchConfig(ctypes.Structure):  # CUlaunchConfig
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("attribute_count", ctypes.c_uint)]


def find_library():
    """libiket_inject.so: $IKET_COLLECTOR, or beside the program `iket` on PATH or in $IKET."""
    iket = shutil.which(os.environ.get("IKET", "iket"))
    if "IKET_COLLECTOR" in os.environ or iket is None:
        return os.environ.get("IKET_COLLECTOR", "libiket_inject.so")
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(iket))), "lib", "libiket_inject.so")


class Image:
    """A patched image, or the original where there is nothing to record in it; `data` is its bytes."""

    def __init__(self, library, original):
        self._library = library
        self._image = library.iket_embed1_patch(original)
        if self._image is None:
            self.data = original
            return
        size = ctypes.c_size_t()
        data = library.iket_embed1_image_data(self._image, ctypes.byref(size))
        self.data = ctypes.string_at(data, size.value)

    def bind(self, module):
        """Tells `module`, loaded from `data` into the current context, where its rings are."""
        if self._image is not None:
            _check(self._library.iket_embed1_bind(self._image, module))

    def unbind(self, module):
        """`module` is about to be unloaded."""
        self._library.iket_embed1_unbind(module)

    def __del__(self):
        if getattr(self, "_image", None) is not None:
            self._library.iket_embed1_release(self._image)


class Tracer:
    """The collector in this process. Options are those of iket_embed_options in iket/embed.h."""

    def __init__(self, library=None, folder=None, ring_bytes=0, memory_bytes=0, selection=None, flight=False):
        self._library = library = ctypes.CDLL(library or find_library())
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        for name, result, *arguments in (
                ("open", text, pointer), ("write", text, text), ("patch", pointer, text),
                ("image_data", pointer, pointer, pointer), ("bind", text, pointer, pointer),
                ("unbind", None, pointer), ("release", None, pointer), ("launching", ctypes.c_int, pointer, pointer)):
            function = getattr(library, f"iket_embed1_{name}")
            function.restype, function.argtypes = result, arguments
        options = Options(size=ctypes.sizeof(Options), folder=_encoded(folder), ring_bytes=ring_bytes,
                          memory_bytes=memory_bytes, selection=_encoded(selection), flight=flight)
        _check(library.iket_embed1_open(ctypes.byref(options)))

    def patch(self, image):
        """The image (bytes of a cubin or fatbin) with its recording code."""
        return Image(self._library, image)

    def launching(self, function, grid, block, shared_bytes=0, stream=0):
        """The CUfunction `function`, as an integer, is about to be launched so."""
        config = LaunchConfig(grid=_three(grid), block=_three(block), shared_bytes=shared_bytes, stream=stream)
        error = self._library.iket_embed1_launching(function, ctypes.byref(config))
        if error != 0:
            raise RuntimeError(f"the kernel must not be launched: CUDA error {error}")

    def write(self, path):
        """Waits for all kernels and writes what was recorded so far."""
        _check(self._library.iket_embed1_write(os.fsencode(path)))


def _encoded(text):
    return None if text is None else os.fsencode(text)


def _three(sizes):
    return (*sizes, 1, 1, 1)[:3]


def _check(why):
    if why is not None:
        raise RuntimeError(why.decode(errors="replace"))
