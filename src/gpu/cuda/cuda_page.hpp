// Pages of generations of a GPU behind the device interface.
#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/device.hpp"

#include <vector>

namespace terrace::gpu {

class cuda_page : public attached_page {
 public:
  using attached_page::attached_page;
  /// Signals behind all work that the stream has.
  virtual result<void> signal(const cuda::stream& on, generation next) const = 0;
  /// Work that follows in the stream does not begin before.
  virtual result<void> await(const cuda::stream& on, generation wanted) const = 0;
};

/// The stream writes and reads the generations itself.
class cuda_counters : public cuda_page {
 public:
  cuda_counters(std::shared_ptr<const generation_page> page, cuda::registration registration)
      : cuda_page(std::move(page)), registration_(std::move(registration)) {}
  result<void> signal(const cuda::stream& on, generation next) const override;
  result<void> await(const cuda::stream& on, generation wanted) const override;

 private:
  cuda::registration registration_; ///< destroyed before the page
};

/// The stream records events, and the processor that had it do so stores the generations. The driver does not
/// know the page.
class cuda_events : public cuda_page {
 public:
  static result<std::shared_ptr<cuda_events>> make(const std::shared_ptr<const cuda::context>& context,
                                                   std::shared_ptr<const generation_page> page,
                                                   uint32_t events);
  result<void> signal(const cuda::stream& on, generation next) const override;
  result<void> await(const cuda::stream& on, generation wanted) const override;

 private:
  cuda_events(std::shared_ptr<const generation_page> page, std::vector<cuda::event> events)
      : cuda_page(std::move(page)), events_(std::move(events)) {}

  std::vector<cuda::event> events_; ///< one event per slot
};

} // namespace terrace::gpu
