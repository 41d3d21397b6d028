// Describes the machine and the software of a run.
#pragma once

#include "bench/report.hpp"

#include <string>
#include <vector>

namespace terrace::bench {

/// Returns processor, memory, kernel, file system of `folder`, compiler, and the versions of the daemon and
/// of the programs it is compared with. Unknown facts are left out.
std::vector<fact> machine_facts(const std::string& folder, const std::string& terraced);

/// The load averages of the last minute, five and fifteen: a quiet machine has 0.
std::string load_averages();

} // namespace terrace::bench
