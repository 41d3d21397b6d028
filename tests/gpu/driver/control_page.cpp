#include "driver/control_page.hpp"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {

namespace {

constexpr size_t page_bytes = sizeof(control_slot) * control_page::slots;

control_slot* map(int descriptor) {
  void* data = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<control_slot*>(data);
}

/// A process that has ended, and whose parent has not reaped it yet, has nothing open.
bool lives(pid_t process) {
  if (process == 0 || kill(process, 0) != 0)
    return false;
  std::ifstream about("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(about, line);
  auto name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") Z") != 0;
}

} // namespace

std::shared_ptr<control_page> control_page::make() {
  int descriptor = memfd_create("sim-control", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, page_bytes) != 0)
    return nullptr;
  auto* data = map(descriptor);
  return data ? std::shared_ptr<control_page>(new control_page(descriptor, data))
              : nullptr; // zero bytes are free slots
}

std::shared_ptr<control_page> control_page::open(pid_t process, int descriptor) {
  int opened = open_descriptor_of(process, descriptor, true);
  if (opened < 0)
    return nullptr;
  auto* data = map(opened);
  return data ? std::shared_ptr<control_page>(new control_page(opened, data)) : nullptr;
}

control_page::~control_page() {
  munmap(slots_, page_bytes);
  close(descriptor_);
}

control_slot* control_page::take(uint64_t id) const {
  for (uint32_t i = 0; i < slots; ++i) {
    if (slots_[i].id.load() != 0)
      continue;
    slots_[i].words.recorded.store(0);
    slots_[i].words.completed.store(0);
    for (auto& importer : slots_[i].importers)
      importer.store(0);
    slots_[i].id.store(id);
    return &slots_[i];
  }
  return nullptr;
}

bool add_importer(control_slot& slot) {
  for (auto& importer : slot.importers) {
    int32_t nobody = 0;
    if (importer.compare_exchange_strong(nobody, getpid()))
      return true;
  }
  return false;
}

void remove_importer(control_slot& slot) {
  for (auto& importer : slot.importers) {
    int32_t self = getpid();
    if (importer.compare_exchange_strong(self, 0))
      return;
  }
}

int importers(const control_slot& slot) {
  int count = 0;
  for (const auto& importer : slot.importers)
    count += lives(importer.load());
  return count;
}

int open_descriptor_of(pid_t process, int descriptor, bool writable) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
  return open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

} // namespace sim
