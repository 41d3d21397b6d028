#include "driver/simulation.hpp"

#include "driver/machine.hpp"

#include <climits>

#define CONTROL extern "C" __attribute__((visibility("default")))

using sim::machine;
using terrace::cuda::status;

CONTROL void sim_reset(unsigned devices, uint64_t bytes, uint64_t seed) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.start(devices, bytes, seed);
}

CONTROL void sim_fail(const char* function, status code, unsigned skip, unsigned count) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.faults[function] = {code, skip, count};
}

CONTROL void sim_fail_execution(status code) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.execution_fault = code;
}

CONTROL void sim_hang(const char* function) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.hang_in = function;
  m.hang_count = 1;
}

CONTROL void sim_hang_all(const char* function) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.hang_in = function;
  m.hang_count = UINT_MAX;
}

CONTROL unsigned sim_hanging() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  return m.hanging;
}

CONTROL void sim_hold_streams() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.held = true;
}

CONTROL void sim_release() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.held = false;
  m.hang_in.clear();
  ++m.releases;
  m.changed.notify_all();
}

CONTROL void sim_hide(const char* function) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.hidden.insert(function);
}

CONTROL void sim_lack(terrace::cuda::device_attribute attribute) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.lacking.insert(attribute);
}

CONTROL void sim_lack_peers() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.peers = false;
}

CONTROL void sim_set_version(int version) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.version = version;
}

CONTROL uint64_t sim_calls(const char* function) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  auto it = m.calls.find(function);
  return it == m.calls.end() ? 0 : it->second;
}

CONTROL size_t sim_violations() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  return m.violations.size();
}

CONTROL const char* sim_violation(size_t index) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  return index < m.violations.size() ? m.violations[index].c_str() : "";
}

CONTROL size_t sim_live() {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  return m.live();
}

CONTROL uint32_t sim_enter(const char* function) {
  sim::entry entered(function, sim::needs::nothing);
  return static_cast<uint32_t>(entered.refused);
}

CONTROL void* sim_pin(uint64_t address, uint64_t bytes) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  if (!m.current()) {
    m.violation("cuFileBufRegister: no current context");
    return nullptr;
  }
  auto found = m.find(address, bytes, true, "cuFileBufRegister");
  if (!found || found->kind != sim::range::device)
    return nullptr;
  ++found->pins;
  return found->data + (address - found->base);
}

CONTROL void sim_unpin(uint64_t address) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  if (auto found = m.range_at(address))
    --found->pins;
}

CONTROL void sim_note_violation(const char* text) {
  auto& m = machine::get();
  std::lock_guard lock(m.mutex);
  m.violation(text);
}
