// The functions that the simulated driver exports, declared from the list that makes the table. A definition
// whose parameters differ from the list does not compile.
#pragma once

#include "gpu/cuda/driver_functions.hpp"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace terrace::cuda {

#define SIM_DECLARE(need, version, symbol, name, parameters) SIM_EXPORT status symbol parameters;
TERRACE_CUDA_FUNCTIONS(SIM_DECLARE)
#undef SIM_DECLARE

SIM_EXPORT status cuGetProcAddress_v2(const char* symbol, void** address, int version, uint64_t flags,
                                      lookup_result* reason);
SIM_EXPORT status cuGetProcAddress(const char* symbol, void** address, int version, uint64_t flags);

} // namespace terrace::cuda
