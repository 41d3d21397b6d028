#include "driver/machine.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace sim {

thread_local bool in_host_function = false;
thread_local std::vector<context_handle> context_stack;

view::~view() { munmap(data_, bytes_); }

physical::~physical() {
  if (descriptor >= 0)
    close(descriptor);
}

machine& machine::get() {
  // Never destroyed: streams that never end may outlive main().
  static machine& one = *[] {
    auto* made = new machine;
    made->owner_pid = getpid();
    made->start(2, 256 << 20, 1);
    made->follow_script();
    return made;
  }();
  return one;
}

void machine::start(unsigned device_count, uint64_t device_bytes, uint64_t seed) {
  for (auto& [handle, one] : streams)
    one->abandoned = true;
  streams.clear();
  events.clear();
  ranges.clear();
  allocations.clear();
  modules.clear();
  kernels.clear();
  ended.clear();
  for (auto& one : devices)
    close(one.descriptor);
  devices.clear();
  for (unsigned i = 0; i < device_count; ++i) {
    device one;
    one.bytes = device_bytes;
    one.descriptor = memfd_create("sim-device", MFD_CLOEXEC);
    if (one.descriptor < 0 || ftruncate(one.descriptor, static_cast<off_t>(device_bytes)) != 0)
      std::perror("simulated device");
    devices.push_back(std::move(one));
  }
  contexts.clear();
  for (unsigned i = 0; i < device_count; ++i) {
    contexts.push_back(std::make_shared<context>());
    contexts.back()->device = static_cast<int>(i);
  }
  page = control_page::make();
  initialised = false;
  version = 13000;
  faults.clear();
  hidden.clear();
  lacking.clear();
  peers = true;
  execution_fault.reset();
  fault_of_reads = false;
  hang_in.clear();
  hang_skip = 0;
  hold_in.clear();
  ++releases;
  held = false;
  calls.clear();
  violations.clear();
  random.seed(seed);
  changed.notify_all();
}

void machine::follow_script() {
  const char* path = std::getenv("TERRACE_SIMULATION");
  if (path == nullptr)
    return;
  strict = true;
  std::ifstream script(path);
  std::string word, function;
  while (script >> word >> function) {
    unsigned skip = 0, count = 1;
    if (auto times = function.find('*'); times != std::string::npos) {
      count = static_cast<unsigned>(std::stoul(function.substr(times + 1)));
      function.resize(times);
    }
    if (auto plus = function.find('+'); plus != std::string::npos) {
      skip = static_cast<unsigned>(std::stoul(function.substr(plus + 1)));
      function.resize(plus);
    }
    if (word == "hang") {
      hang_in = function;
      hang_skip = skip;
      hang_count = count;
    } else if (word == "hold") {
      hold_in = function;
      hold_skip = skip;
      hold_count = count;
      hold_at = std::string(path) + ".hold";
    } else if (word == "refuse") {
      faults[function] = {status::invalid_value, skip, count};
    } else if (word == "halve") {
      faults[function] = {static_cast<status>(9999), skip, count};
    } else if (word == "lack" && function == "peers") {
      peers = false;
    } else if (word == "lack" && function == "stream_memory_ops") {
      hidden.insert({"cuStreamWriteValue32", "cuStreamWaitValue32"});
    } else if (word == "lack") {
      lacking.insert(device_attribute::read_only_host_register);
    } else if (word == "lose") {
      execution_fault = status::ecc_uncorrectable;
      fault_of_reads = function == "reads";
    }
  }
}

void machine::violation(std::string text) {
  if (strict) {
    std::fprintf(stderr, "the simulated driver: %s\n", text.c_str());
    std::abort();
  }
  violations.push_back(std::move(text));
}

std::shared_ptr<context> machine::current() {
  if (!context_stack.empty())
    for (const auto& one : contexts)
      if (reinterpret_cast<context_handle>(one.get()) == context_stack.back() && one->retains > 0)
        return one;
  return nullptr;
}

std::shared_ptr<range> machine::range_at(uint64_t base) {
  auto it = ranges.find(base);
  return it == ranges.end() ? nullptr : it->second;
}

std::shared_ptr<range> machine::find(uint64_t address, uint64_t bytes, bool writes, const char* what) {
  auto it = ranges.upper_bound(address);
  auto found = it == ranges.begin() ? nullptr : std::prev(it)->second;
  if (!found || address >= found->base + found->bytes) {
    violation(std::string(what) + ": memory that is neither the device's nor pinned");
    return nullptr;
  }
  uint64_t offset = address - found->base;
  if (bytes > found->bytes - offset) {
    violation(std::string(what) + ": runs over the end of an allocation");
    return nullptr;
  }
  if (!found->writable && writes) {
    violation(std::string(what) + ": writes to memory that is registered as read-only");
    return nullptr;
  }
  if (found->kind != range::reserved)
    return found;
  for (uint64_t at = offset; at < offset + bytes;) {
    auto part = found->parts.upper_bound(at);
    bool inside = part != found->parts.begin();
    if (inside) {
      --part;
      inside = at < part->first + part->second.bytes;
    }
    if (!inside || !part->second.readable || (writes && !part->second.writable)) {
      violation(std::string(what) +
                (inside ? ": access was not granted" : ": reserved addresses without memory"));
      return nullptr;
    }
    at = part->first + part->second.bytes;
  }
  return found;
}

std::shared_ptr<stream> machine::find(stream_handle handle) {
  auto it = streams.find(handle);
  if (it == streams.end()) {
    violation(!handle                             ? "the default stream, which waits for all others"
              : ended.contains((uint64_t) handle) ? "a stream that was destroyed"
                                                  : "no stream");
    return nullptr;
  }
  if (it->second->home != current()) {
    violation("a stream of another context than the current one");
    return nullptr;
  }
  return it->second;
}

std::shared_ptr<event> machine::find(event_handle handle) {
  auto it = events.find(handle);
  if (it == events.end()) {
    violation(ended.contains((uint64_t) handle) ? "an event that was destroyed" : "no event");
    return nullptr;
  }
  if (it->second->home != current()) {
    violation("an event of another context than the current one");
    return nullptr;
  }
  if (it->second->imported && it->second->slot->id.load() != it->second->slot_id) {
    violation("an imported event that its exporter has destroyed");
    return nullptr;
  }
  return it->second;
}

void machine::push(const std::shared_ptr<stream>& to, operation what) {
  for (auto& one : what.pins)
    ++one->pins;
  ++to->home->unfinished;
  to->queue.push_back(std::move(what));
  changed.notify_all();
}

void machine::drop(std::shared_ptr<range> what, const char* how) {
  if (what->pins > 0)
    violation(std::string(how) + ": memory that a stream still uses");
  else if (what->kind == range::device)
    std::memset(what->data, 0xdd, what->bytes);
  ended.insert(what->base);
  ranges.erase(what->base);
}

size_t machine::live() const {
  size_t retained = 0;
  for (const auto& one : contexts)
    retained += one->retains;
  return streams.size() + events.size() + ranges.size() + allocations.size() + modules.size() + retained;
}

namespace {

/// Tells a test that this thread waits, and waits until it opens the other end.
void wait_for_test(const std::string& pipe) {
  close(open((pipe + "ing").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  close(open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
}

} // namespace

entry::entry(const char* name, needs what) : lock(machine::get().mutex) {
  auto& m = machine::get();
  ++m.calls[name];
  if (getpid() != m.owner_pid) {
    refused = status::not_initialized; // a forked child has no driver
    return;
  }
  if (in_host_function) {
    m.violation(std::string(name) + ": called by a host function");
    refused = status::not_permitted;
    return;
  }
  bool hangs = m.hang_in == name || (m.hang_in == "copies" && std::string_view(name).starts_with("cuMemcpy"));
  if (hangs && m.hang_skip > 0) {
    --m.hang_skip;
  } else if (hangs) {
    if (--m.hang_count == 0)
      m.hang_in.clear();
    ++m.hanging;
    m.changed.notify_all();
    m.changed.wait(lock, [&, releases = m.releases] { return m.releases != releases; });
    --m.hanging;
  }
  if (m.hold_in == name && m.hold_skip > 0) {
    --m.hold_skip;
  } else if (m.hold_in == name) {
    if (--m.hold_count == 0)
      m.hold_in.clear();
    lock.unlock();
    wait_for_test(m.hold_at);
    lock.lock();
  }
  if (auto it = m.faults.find(name); it != m.faults.end()) {
    auto& wanted = it->second;
    if (wanted.skip > 0) {
      --wanted.skip;
    } else if (wanted.count > 0) {
      --wanted.count;
      refused = wanted.code;
      return;
    }
  }
  if (what == needs::nothing)
    return;
  if (!m.initialised) {
    refused = status::not_initialized;
    return;
  }
  if (what == needs::initialised)
    return;
  auto context = m.current();
  refused = !context ? status::invalid_context : context->lost;
}

void run_stream(std::shared_ptr<stream> self) {
  auto& m = machine::get();
  std::unique_lock lock(m.mutex);
  for (;;) {
    m.changed.wait(lock, [&] {
      return self->abandoned || (!self->queue.empty() && !m.held) || (self->destroyed && self->queue.empty());
    });
    if (self->abandoned || self->queue.empty())
      return;
    auto operation = std::move(self->queue.front());
    self->queue.pop_front();
    self->busy = true;
    auto lost = [&] { return self->home->lost != status::success; };
    while (operation.ready && !lost() && !self->abandoned && !operation.ready()) {
      // A device polls memory again and again; nobody would wake us.
      if (operation.polls)
        m.changed.wait_for(lock, std::chrono::microseconds(100));
      else
        m.changed.wait(lock);
    }
    if (self->abandoned)
      return;
    if (!lost() && operation.copies && m.execution_fault && (operation.reads || !m.fault_of_reads)) {
      self->home->lost = *m.execution_fault;
      m.execution_fault.reset();
    }
    if (!lost() && operation.run) {
      lock.unlock();
      auto code = operation.run();
      lock.lock();
      if (code != status::success && !lost())
        self->home->lost = code;
    }
    if (!lost() && operation.done)
      operation.done();
    for (auto& one : operation.pins)
      --one->pins;
    operation = {};
    self->busy = false;
    --self->home->unfinished;
    m.changed.notify_all();
  }
}

} // namespace sim
