// Memory and pages of the host device.
#pragma once

#include "gpu/device.hpp"

namespace terrace::gpu {

class host_memory : public memory {
 public:
  /// The process's own memory, or another process's.
  host_memory(unique_fd descriptor, mapping pages)
      : descriptor_(std::move(descriptor)), pages_(std::make_shared<const mapping>(std::move(pages))) {}
  explicit host_memory(std::shared_ptr<const mapping> pages) : pages_(std::move(pages)) {}
  /// `bytes` from `offset` on, which may only be read.
  host_memory(std::shared_ptr<const mapping> pages, uint64_t offset, uint64_t bytes)
      : pages_(std::move(pages)), offset_(offset), bytes_(bytes), writable_(false) {}

  uint64_t bytes() const override { return bytes_; }
  bool writable() const override { return writable_; }
  result<memory_handle> share() const override;
  std::byte* data() const { return pages_->data() + offset_; }

 private:
  unique_fd descriptor_;
  std::shared_ptr<const mapping> pages_;
  uint64_t offset_ = 0;
  uint64_t bytes_ = pages_->size();
  bool writable_ = true;
};

class host_page : public attached_page {
 public:
  explicit host_page(std::shared_ptr<const generation_page> page) : attached_page(std::move(page)) {}
};

} // namespace terrace::gpu
