// Modules and launches. Device code is not executed: each of our kernels has a twin here, made from the same template.
#include "driver/engine_entries.hpp"
#include "driver/machine.hpp"

#include "gpu/kernels/copy_runs.hpp"
#include "gpu/kernels/payload_sums.hpp"

#include <array>
#include <cstring>

namespace terrace::cuda {

namespace {

using gpu::copy_batch;
using gpu::copy_run;

uint64_t extent(uint64_t stride, const copy_run& run) { return (run.count - 1) * stride + run.bytes; }

/// A run whose addresses are ours. Its places may lie between those of others, so only the range from each
/// run's first to last byte is checked.
struct resolved_run {
  copy_run run;
  uint64_t to = 0; ///< added to an address to find its bytes
  uint64_t from = 0;
};

/// The twin of terrace_copy_runs (src/gpu/kernels/copy_runs.cu).
status launch_copy_runs(sim::machine& m, const std::shared_ptr<sim::stream>& stream, uint64_t grid_x,
                        uint64_t grid_y, uint64_t block, void** parameters) {
  copy_batch batch;
  std::memcpy(&batch, parameters[0], sizeof batch); // the driver copies parameters, too
  sim::operation launch;
  std::vector<resolved_run> runs;
  bool legal = batch.runs <= copy_batch::runs_max;
  for (uint32_t i = 0; legal && i < batch.runs; ++i) {
    const auto& run = batch.run[i];
    if (run.count == 0 || run.bytes == 0)
      continue;
    auto to = m.find(run.destination, extent(run.destination_stride, run), true, "terrace_copy_runs");
    auto from = to ? m.find(run.source, extent(run.source_stride, run), false, "terrace_copy_runs") : nullptr;
    legal = from != nullptr;
    if (!legal)
      break;
    runs.push_back({run, reinterpret_cast<uint64_t>(to->data) - to->base,
                    reinterpret_cast<uint64_t>(from->data) - from->base});
    launch.pins.push_back(to);
    launch.pins.push_back(from);
  }
  launch.copies = true;
  launch.run = [runs = std::move(runs), legal, grid_x, grid_y, block] {
    if (!legal)
      return status::illegal_address; // noticed when it runs, and ends the context
    auto misaligned = false;
    for (uint64_t y = 0; y < grid_y; ++y)
      for (uint64_t i = y; i < runs.size(); i += grid_y)
        for (uint64_t thread = 0; thread < grid_x * block; ++thread)
          gpu::copy_share(runs[i].run, thread, grid_x * block,
                          [&](uint64_t to, uint64_t from, uint32_t bytes) {
                            misaligned = misaligned || (to | from) % bytes != 0;
                            std::memcpy(reinterpret_cast<void*>(to + runs[i].to),
                                        reinterpret_cast<const void*>(from + runs[i].from), bytes);
                          });
    return misaligned ? status::misaligned_address : status::success;
  };
  m.push(stream, std::move(launch));
  return status::success;
}

/// The twin of terrace_payload_sums (src/gpu/kernels/payload_sums.cu).
status launch_payload_sums(sim::machine& m, const std::shared_ptr<sim::stream>& stream, uint64_t grid_x,
                           uint64_t block, void** parameters) {
  gpu::sum_batch batch;
  std::memcpy(&batch, parameters[0], sizeof batch);
  if (grid_x != batch.payloads || batch.payloads > gpu::sum_batch::payloads_max ||
      block != gpu::sum_thread::count)
    return status::invalid_value;
  sim::operation launch;
  const std::byte* payloads[gpu::sum_batch::payloads_max] = {};
  auto sums = m.find(batch.sums, batch.payloads * sizeof(uint64_t), true, "terrace_payload_sums");
  bool legal = sums != nullptr;
  for (uint32_t i = 0; legal && i < batch.payloads; ++i) {
    const auto& payload = batch.payload[i];
    auto from = m.find(payload.address, payload.bytes, false, "terrace_payload_sums");
    legal = from != nullptr && payload.bytes >= gpu::payload_sum_bytes_min && payload.address % 8 == 0;
    if (!legal)
      break;
    payloads[i] = from->data + (payload.address - from->base);
    launch.pins.push_back(from);
  }
  std::byte* to = legal ? sums->data + (batch.sums - sums->base) : nullptr;
  if (legal)
    launch.pins.push_back(sums);
  launch.run = [batch, to, legal, payloads = std::to_array(payloads)] {
    if (!legal)
      return status::illegal_address; // noticed when it runs, and ends the context
    auto read = [](uint64_t address) {
      uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
      return word;
    };
    for (uint32_t i = 0; i < batch.payloads; ++i) {
      const uint64_t sum =
          gpu::sum_of_payload({reinterpret_cast<uint64_t>(payloads[i]), batch.payload[i].bytes}, read);
      std::memcpy(to + i * sizeof sum, &sum, sizeof sum);
    }
    return status::success;
  };
  m.push(stream, std::move(launch));
  return status::success;
}

} // namespace

SIM_EXPORT status cuModuleLoadData(module_handle* module, const void* image) {
  SIM_ENTER("cuModuleLoadData", context);
  if (!image)
    return status::invalid_value;
  *module = m.new_handle<module_handle>();
  m.modules.insert(*module);
  return status::success;
}

SIM_EXPORT status cuModuleUnload(module_handle module) {
  SIM_ENTER("cuModuleUnload", context);
  if (m.modules.erase(module) == 0) {
    m.violation("cuModuleUnload: no module, or twice");
    return status::invalid_handle;
  }
  std::erase_if(m.kernels, [&](const auto& one) { return one.second.first == module; });
  return status::success;
}

SIM_EXPORT status cuModuleGetFunction(function_handle* function, module_handle module, const char* name) {
  SIM_ENTER("cuModuleGetFunction", context);
  if (!m.modules.contains(module))
    return status::invalid_handle;
  if (std::strcmp(name, "terrace_copy_runs") != 0 && std::strcmp(name, "terrace_payload_sums") != 0 &&
      !sim::has_engine_twin(name))
    return status::not_found;
  *function = m.new_handle<function_handle>();
  m.kernels[*function] = {module, name};
  return status::success;
}

SIM_EXPORT status cuLaunchKernel(function_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                                 stream_handle stream, void** parameters, void** extra) {
  SIM_ENTER("cuLaunchKernel", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  auto kernel = m.kernels.find(function);
  if (kernel == m.kernels.end()) {
    m.violation("cuLaunchKernel: a kernel whose module was unloaded, or none");
    return status::invalid_handle;
  }
  if (!parameters || extra || grid_x == 0 || grid_y == 0 || grid_z != 1 || block_x == 0 || block_x > 1024 ||
      block_y != 1 || block_z != 1 || grid_y > 65535)
    return status::invalid_value;
  if (auto twin = sim::engine_twin(m, kernel->second.second, parameters)) {
    m.push(found, std::move(*twin));
    return status::success;
  }
  if (kernel->second.second == "terrace_payload_sums")
    return launch_payload_sums(m, found, grid_x, block_x, parameters);
  return launch_copy_runs(m, found, grid_x, grid_y, block_x, parameters);
}

} // namespace terrace::cuda
