#include "bench/engine/kernels.hpp"

namespace terrace::bench {

const kernels& plain_kernels();
const kernels& avx2_kernels();

const kernels& best_kernels() {
#ifdef TERRACE_AVX2_KERNELS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return avx2_kernels();
#endif
  return plain_kernels();
}

} // namespace terrace::bench
