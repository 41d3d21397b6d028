#include "simulated_device.hpp"

#include <algorithm>
#include <string>

namespace terrace {

void simulated_device::write(uint64_t offset, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), now_.begin() + static_cast<ptrdiff_t>(offset));
  for (uint64_t block = offset / block_bytes; block * block_bytes < offset + bytes.size(); ++block)
    not_synced_.insert(block);
}

void simulated_device::write_part(uint64_t offset, std::span<const std::byte> bytes, uint64_t blocks) {
  write(offset, bytes.first(std::min<uint64_t>(bytes.size(), blocks * block_bytes)));
}

void simulated_device::sync() {
  for (uint64_t block : not_synced_)
    std::copy_n(now_.begin() + static_cast<ptrdiff_t>(block * block_bytes), block_bytes,
                durable_.begin() + static_cast<ptrdiff_t>(block * block_bytes));
  not_synced_.clear();
}

void simulated_device::crash(const crash_faults& faults, std::mt19937_64& dice) {
  std::uniform_real_distribution<double> chance;
  for (uint64_t block : not_synced_) {
    auto begin = static_cast<ptrdiff_t>(block * block_bytes);
    if (chance(dice) < faults.lost)
      continue;
    uint64_t written = chance(dice) < faults.torn ? block_bytes / 2 : block_bytes;
    std::copy_n(now_.begin() + begin, written, durable_.begin() + begin);
  }
  not_synced_.clear();
  now_ = durable_;
}

void simulated_device::flip_bit(uint64_t bit) {
  std::byte mask{static_cast<unsigned char>(1U << bit % 8)};
  now_[bit / 8] ^= mask;
  durable_[bit / 8] ^= mask;
}

result<void> simulated_device::read(uint64_t file_offset, std::span<std::byte> into) {
  if (file_offset + into.size() > now_.size())
    return fail(errc::internal, "the device ends at " + std::to_string(now_.size()));
  for (uint64_t block = file_offset / block_bytes; block * block_bytes < file_offset + into.size(); ++block)
    if (unreadable_.contains(block))
      return fail(errc::internal, "Input/output error");
  std::copy_n(now_.begin() + static_cast<ptrdiff_t>(file_offset), into.size(), into.begin());
  return {};
}

} // namespace terrace
