// Calls of every sort between functions with sections of their own (-rdc): direct, recursive,
// through a table of pointers.
typedef int (*Step)(int);
__device__ __noinline__ int Triple(int x) { return x * 3 + 1; }
__device__ __noinline__ int Fold(int x) { return x > 5 ? Triple(x - 5) ^ 7 : x; }
__device__ Step table[2] = {Triple, Fold};
__device__ __noinline__ int Fib(int x) { return x < 2 ? x : Fib(x - 1) + Fib(x - 2) + Triple(x); }
extern "C" __global__ void through_table(int* o, int i) { o[0] = table[i](i); }
extern "C" __global__ void recursive(int* o, int i) { o[0] = Fib(i); }
