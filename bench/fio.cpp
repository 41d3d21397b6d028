#include "bench/fio.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>

namespace terrace::bench {

std::optional<double> rate_in_fio_output(const std::string& json, bool writes) {
  auto found = nlohmann::json::parse(json, nullptr, false);
  auto at = nlohmann::json::json_pointer(writes ? "/jobs/0/write/bw_bytes" : "/jobs/0/read/bw_bytes");
  if (found.is_discarded() || !found.contains(at) || !found[at].is_number())
    return std::nullopt;
  auto rate = found[at].get<double>();
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

std::optional<double> fio_rate(const fio_job& job) {
  std::string command =
      "fio --name=terrace --output-format=json --ioengine=io_uring --direct=1 --fallocate=none"
      " --rw=" +
      std::string(job.writes ? "write" : "read --readonly") + " --filename='" + job.file +
      "' --offset=" + std::to_string(job.begin) + " --size=" + std::to_string(job.bytes) +
      " --bs=" + std::to_string(job.block_bytes) + " --iodepth=" + std::to_string(job.depth) + " 2>/dev/null";
  FILE* out = ::popen(command.c_str(), "r");
  if (!out)
    return std::nullopt;
  std::string said;
  std::array<char, 4096> part;
  for (size_t got; (got = std::fread(part.data(), 1, part.size(), out)) > 0;)
    said.append(part.data(), got);
  bool worked = ::pclose(out) == 0;
  return worked ? rate_in_fio_output(said, job.writes) : std::nullopt;
}

} // namespace terrace::bench
