/* A driver that compiles PTX, in front of the software device, which does not.
 *
 * The machine code is in the file IKET_PTX_CUBIN, whatever the PTX. With IKET_PTX_FAILS=STEP the
 * linker's step (create, add, complete) fails. A load call that is given PTX itself compiles it
 * too, unless IKET_PTX_LOAD_FAILS is set. What a driver would say goes to the caller's logs. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef cuModuleLoadData
#undef cuLibraryLoadData

CUresult real_cuModuleLoadData(CUmodule *, const void *);
CUresult real_cuModuleLoadDataEx(CUmodule *, const void *, unsigned, CUjit_option *, void **);
CUresult real_cuLibraryLoadData(CUlibrary *, const void *, CUjit_option *, void **, unsigned,
                                CUlibraryOption *, void **, unsigned);
CUresult cuCtxGetCurrent(CUcontext *);

static struct {
  unsigned count;
  CUjit_option *options;
  void **values;
  unsigned inputs;
} link;

static int Fails(const char *step) {
  const char *wanted = getenv("IKET_PTX_FAILS");
  return wanted != NULL && strcmp(wanted, step) == 0;
}

static char *MachineCode(size_t *size) {
  static char bytes[16 << 20];
  FILE *file = fopen(getenv("IKET_PTX_CUBIN"), "rb");
  if (file == NULL) abort();
  *size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return bytes;
}

static void Log(unsigned count, CUjit_option *options, void **values, const char *who) {
  char *buffer = NULL;
  unsigned registers = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) buffer = values[i];
    if (options[i] == CU_JIT_MAX_REGISTERS) registers = (unsigned)(uintptr_t)values[i];
  }
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] != CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || buffer == NULL) continue;
    const int length =
        snprintf(buffer, (size_t)(uintptr_t)values[i], "%s, %u registers", who, registers);
    values[i] = (void *)(uintptr_t)length;
  }
}

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
  CUcontext context = NULL;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (Fails("create")) return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  link.count = count;
  link.options = options;
  link.values = values;
  link.inputs = 0;
  *state = (CUlinkState)&link;
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned count, CUjit_option *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  if (state != (CUlinkState)&link || Fails("add")) return CUDA_ERROR_INVALID_PTX;
  const char *text = data;
  const uint32_t magic = 0xba55ed50;
  if (type == CU_JIT_INPUT_PTX && (size == 0 || text[size - 1] != 0 || strlen(text) + 1 != size)) {
    return CUDA_ERROR_INVALID_PTX;
  }
  if (type == CU_JIT_INPUT_FATBINARY && memcmp(data, &magic, sizeof magic) != 0) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  ++link.inputs;
  return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
  if (state != (CUlinkState)&link) return CUDA_ERROR_INVALID_HANDLE;
  char who[64];
  snprintf(who, sizeof who, "linker of %u", link.inputs);
  Log(link.count, link.options, link.values, who);
  if (Fails("complete")) return CUDA_ERROR_UNKNOWN;
  *cubin = MachineCode(size);
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  if (state != (CUlinkState)&link) return CUDA_ERROR_INVALID_HANDLE;
  /* Nobody may use the machine code after this. */
  size_t size = 0;
  memset(MachineCode(&size), 0, size);
  return CUDA_SUCCESS;
}

/* The machine code of PTX, or the image that was given; null if it cannot be compiled. */
static const void *Compiled(const void *image) {
  size_t size = 0;
  if (image == NULL || *(const char *)image != '/') return image;
  return getenv("IKET_PTX_LOAD_FAILS") != NULL ? NULL : MachineCode(&size);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  const void *code = Compiled(image);
  return code == NULL ? CUDA_ERROR_INVALID_PTX : real_cuModuleLoadData(module, code);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  const void *code = Compiled(image);
  if (code != image || count > 0)
    Log(count, options, values, code == image ? "no PTX" : "load call");
  if (code == NULL) return CUDA_ERROR_INVALID_PTX;
  return real_cuModuleLoadDataEx(module, code, count, options, values);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
                           void **jit_values, unsigned jit_count, CUlibraryOption *options,
                           void **values, unsigned count) {
  const void *code = Compiled(image);
  if (code == NULL) return CUDA_ERROR_INVALID_PTX;
  return real_cuLibraryLoadData(library, code, jit_options, jit_values, jit_count, options, values,
                                count);
}
