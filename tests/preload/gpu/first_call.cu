// Only makes the context: what the start costs.
#include <cuda_runtime.h>

int main() { return cudaFree(nullptr) == cudaSuccess ? 0 : 1; }
