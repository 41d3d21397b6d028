// `terraced --gpu DEVICE`: the process that makes all CUDA calls for one GPU. The daemon starts it, and it
// ends with the daemon.
#pragma once

#include <string>

namespace terrace {

/// Serves the socket that the daemon left at descriptor 3. Returns only if it cannot begin.
int run_gpu_process(const std::string& device);

/// Returns what `terraced --version` says about the machine's GPUs: a line for the driver and one for each
/// device.
std::string gpu_report();

} // namespace terrace
