#include "simulated_device.hpp"

#include <algorithm>
#include <string>

namespace terrace {

namespace {
result<void> gone() { return fail(errc::internal, "the device is gone"); }
} // namespace

bool simulated_device::dies() {
  ++operations_;
  dead_ = dead_ || operations_left_ == 0;
  --operations_left_;
  return dead_;
}

result<void> simulated_device::write(uint64_t offset, std::span<const std::byte> bytes) {
  bool was_dead = dead_;
  bool dies_now = dies();
  if (!was_dead)
    write_part(offset, bytes, bytes.size() / block_bytes / (dies_now ? 2 : 1));
  return dies_now ? gone() : result<void>();
}

void simulated_device::write_part(uint64_t offset, std::span<const std::byte> bytes, uint64_t blocks) {
  auto part = bytes.first(std::min<uint64_t>(bytes.size(), blocks * block_bytes));
  std::copy(part.begin(), part.end(), now_.begin() + static_cast<ptrdiff_t>(offset));
  for (uint64_t block = offset / block_bytes; block * block_bytes < offset + part.size(); ++block)
    not_synced_.insert(block);
}

result<void> simulated_device::sync() {
  if (dies())
    return gone();
  durable_.resize(now_.size());
  for (uint64_t block : not_synced_)
    std::copy_n(now_.begin() + static_cast<ptrdiff_t>(block * block_bytes), block_bytes,
                durable_.begin() + static_cast<ptrdiff_t>(block * block_bytes));
  not_synced_.clear();
  return {};
}

result<void> simulated_device::resize(uint64_t bytes) {
  if (dies())
    return gone();
  now_.resize(bytes);
  std::erase_if(not_synced_, [&](uint64_t block) { return (block + 1) * block_bytes > bytes; });
  return {};
}

void simulated_device::crash(const crash_faults& faults, std::mt19937_64& dice) {
  std::uniform_real_distribution<double> chance;
  if (chance(dice) >= faults.lost)
    durable_.resize(now_.size());
  std::erase_if(not_synced_, [&](uint64_t block) { return (block + 1) * block_bytes > durable_.size(); });
  for (uint64_t block : not_synced_) {
    auto begin = static_cast<ptrdiff_t>(block * block_bytes);
    if (chance(dice) < faults.lost)
      continue;
    uint64_t written = chance(dice) < faults.torn ? block_bytes / 2 : block_bytes;
    std::copy_n(now_.begin() + begin, written, durable_.begin() + begin);
  }
  not_synced_.clear();
  now_ = durable_;
  dead_ = false;
  operations_left_ = UINT64_MAX;
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
