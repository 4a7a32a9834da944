// Gives registers back while it runs.
extern "C" __global__ void __launch_bounds__(384, 1) reconfigure(int* o) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    o[threadIdx.x] = 1;
  }
}
