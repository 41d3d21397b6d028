#include "bench/engine/device/device_memory.hpp"

#include "bench/harness.hpp"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace terrace::bench {

device_link::device_link(std::shared_ptr<const cuda::context> on)
    : context_(std::move(on)), stream_(must(cuda::stream::make(context_), "making a stream")) {
  void* pages = ::mmap(nullptr, pinned_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    give_up("no memory");
  pages_ = {static_cast<std::byte*>(pages), pinned_bytes};
  pinned_ = must(cuda::registration::make(context_, pages_), "pinning memory");
}

device_link::~device_link() {
  pinned_.reset();
  ::munmap(pages_.data(), pages_.size());
}

cuda::allocation device_link::allocate(uint64_t bytes) const {
  return must(cuda::allocation::make(context_, bytes), "allocating device memory");
}

void device_link::write(cuda::device_pointer to, std::span<const std::byte> from) {
  while (!from.empty()) {
    const size_t now = std::min(from.size(), pages_.size());
    std::memcpy(pages_.data(), from.data(), now);
    copy(to, pinned_.address(), now);
    to += now;
    from = from.subspan(now);
  }
}

void device_link::read(std::span<std::byte> to, cuda::device_pointer from) {
  while (!to.empty()) {
    const size_t now = std::min(to.size(), pages_.size());
    copy(pinned_.address(), from, now);
    std::memcpy(to.data(), pages_.data(), now);
    from += now;
    to = to.subspan(now);
  }
}

void device_link::copy(cuda::device_pointer to, cuda::device_pointer from, uint64_t bytes) {
  must(context_->call("cuMemcpyAsync", context_->api().MemcpyAsync, to, from, static_cast<size_t>(bytes),
                      stream_.get()),
       "copying");
  must(stream_.synchronize(), "copying");
}

} // namespace terrace::bench
