// A kernel with bare pmevents, which `iket profile --pmevent N=NAME` takes for marks.
extern "C" __global__ void pmevents(float* data, int n) {
  float x = data[threadIdx.x];
  for (int i = 0; i < n; ++i) {
    asm volatile("pmevent.mask 5;");
    x = x * 1.5f + 1.0f;
  }
  asm volatile("pmevent.mask 9;");
  if (threadIdx.x >= 32) asm volatile("pmevent.mask 5;");
  data[threadIdx.x] = x;
}
