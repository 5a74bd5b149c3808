// Names the getter of each library of handles, so that it is linked; calls none, as there may be no
// GPU.
#include <cstdio>

#include <cistern/cistern.hpp>
#include <cistern/handles/cublas.hpp>
#include <cistern/handles/cudnn.hpp>
#include <cistern/handles/cudss.hpp>
#include <cistern/handles/cusolver.hpp>
#include <cistern/handles/cusparse.hpp>
#include <cistern/handles/hip.hpp>

namespace {

template <class Handle>
void name(const char* library, Handle (*getter)()) {
  std::printf("%s: %s\n", library, getter != nullptr ? "linked" : "missing");
}

}  // namespace

int main(int count, char**) {
  // Asked at run time: a compiler that knows the answer would not link the getter.
  if (count > 100) cistern::setWorkspaceAllocator(0, nullptr);
#ifdef WITH_handles_cublas
  name("cublas", &cistern::getCurrentCUDABlasHandle);
#endif
#ifdef WITH_handles_cublas_lt
  name("cublas_lt", &cistern::getCurrentCUDABlasLtHandle);
#endif
#ifdef WITH_handles_cudnn
  name("cudnn", &cistern::getCudnnHandle);
#endif
#ifdef WITH_handles_cudss
  name("cudss", &cistern::getCurrentCudssHandle);
#endif
#ifdef WITH_handles_cusolver
  name("cusolver", &cistern::getCurrentCUDASolverDnHandle);
#endif
#ifdef WITH_handles_cusparse
  name("cusparse", &cistern::getCurrentCUDASparseHandle);
#endif
#ifdef WITH_handles_rocblas
  name("rocblas", &cistern::getCurrentRocblasHandle);
#endif
#ifdef WITH_handles_hipblas
  name("hipblas", &cistern::getCurrentHipblasHandle);
#endif
#ifdef WITH_handles_hipsparse
  name("hipsparse", &cistern::getCurrentHipsparseHandle);
#endif
#ifdef WITH_handles_hipsolver
  name("hipsolver", &cistern::getCurrentHipsolverHandle);
#endif
#ifdef WITH_handles_miopen
  name("miopen", &cistern::getMiopenHandle);
#endif
  return 0;
}
