#include "bench/engine/device/device_kv.hpp"

#include "bench/harness.hpp"
#include "client/client.hpp"

#include <cstring>

namespace terrace::bench {

device_kv::device_kv(std::shared_ptr<device_link> link, std::string uuid, const model_shape& shape,
                     size_t blocks)
    : paged_kv(shape, blocks), link_(std::move(link)), uuid_(std::move(uuid)),
      memory_(link_->allocate(bytes())) {}

void device_kv::read(uint32_t block, std::span<uint8_t> to) const {
  link_->read(std::as_writable_bytes(to.first(block_bytes())), address_of(block));
}

void device_kv::write(uint32_t block, std::span<const uint8_t> from) {
  link_->write(address_of(block), std::as_bytes(from.first(block_bytes())));
}

client::registered_region device_kv::register_at(client::connection& daemon) const {
  client::device_allocation memory;
  memory.device = uuid_;
  memory.bytes = bytes();
  auto handle = must(memory_.share(), "sharing device memory");
  static_assert(sizeof handle == sizeof memory.handle);
  std::memcpy(memory.handle.data(), &handle, sizeof handle);
  return must(daemon.register_device_region(memory), "registering device memory");
}

} // namespace terrace::bench
