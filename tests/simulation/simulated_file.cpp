#include "simulated_file.hpp"

#include <algorithm>

namespace terrace::simulation {

namespace {

auto at(std::vector<std::byte>& bytes, uint64_t offset) {
  return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
}

} // namespace

uint64_t simulated_file::read(uint64_t offset, std::span<std::byte> into) const {
  uint64_t count = std::min<uint64_t>(into.size(), size() - std::min(size(), offset));
  std::copy_n(now_.begin() + static_cast<std::ptrdiff_t>(count == 0 ? 0 : offset), count, into.begin());
  return count;
}

void simulated_file::write(uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty())
    return;
  uint64_t end = offset + bytes.size();
  if (end > size())
    resize(end);
  std::copy(bytes.begin(), bytes.end(), at(now_, offset));
  uint64_t first = offset / sector_bytes * sector_bytes;
  uint64_t last = std::min(size(), (end + sector_bytes - 1) / sector_bytes * sector_bytes);
  unsynced_.push_back({first, std::make_shared<std::vector<std::byte>>(at(now_, first), at(now_, last))});
}

void simulated_file::resize(uint64_t bytes) {
  if (bytes == size())
    return;
  now_.resize(bytes);
  unsynced_.push_back({bytes, nullptr});
}

void simulated_file::sync(uint64_t changes) {
  for (; synced_ < changes && !unsynced_.empty(); ++synced_) {
    apply(unsynced_.front());
    unsynced_.pop_front();
  }
}

void simulated_file::fail_sync(uint64_t changes, survival how, seeded_random& random) {
  keep(changes - std::min(changes, synced_), how, random);
}

void simulated_file::crash(survival how, seeded_random& random) {
  keep(unsynced_.size(), how, random);
  now_ = durable_;
}

/// Removes the oldest changes, and makes some of them durable.
void simulated_file::keep(uint64_t count, survival how, seeded_random& random) {
  count = std::min<uint64_t>(count, unsynced_.size());
  // File systems record sizes in order.
  uint64_t sizes = how == survival::nothing      ? 0
                   : how == survival::everything ? count
                                                 : random.below(count + 1);
  for (uint64_t i = 0; i < count; ++i) {
    const change& one = unsynced_[i];
    bool before = i < sizes;
    if (one.bytes == nullptr ? before : how == survival::everything || (how == survival::oldest && before))
      apply(one);
    else if (one.bytes == nullptr || how == survival::nothing)
      continue;
    else if (how == survival::oldest && i == sizes)
      apply(one, 0, random.below(one.bytes->size() / sector_bytes + 1) * sector_bytes);
    else if (how == survival::changes && random.coin())
      apply(one);
    else if (how == survival::sectors)
      for (uint64_t sector = 0; sector < one.bytes->size(); sector += sector_bytes)
        if (random.coin())
          apply(one, sector, sector + sector_bytes);
  }
  unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(count));
  synced_ += count;
}

/// Makes a part of a change durable, as far as the durable file reaches.
void simulated_file::apply(const change& one, uint64_t begin, uint64_t end) {
  end = std::min<uint64_t>({end, one.bytes->size(), durable_.size() - std::min(durable_.size(), one.offset)});
  if (begin < end)
    std::copy(one.bytes->begin() + static_cast<std::ptrdiff_t>(begin),
              one.bytes->begin() + static_cast<std::ptrdiff_t>(end), at(durable_, one.offset + begin));
}

void simulated_file::apply(const change& one) {
  if (one.bytes == nullptr)
    durable_.resize(one.offset);
  else
    apply(one, 0, one.bytes->size());
}

void simulated_file::flip_bit(uint64_t bit) {
  uint64_t byte = bit / 8;
  std::byte mask{static_cast<unsigned char>(1U << bit % 8)};
  bool dirty = std::any_of(unsynced_.begin(), unsynced_.end(), [&](const change& one) {
    return one.bytes != nullptr && byte >= one.offset && byte - one.offset < one.bytes->size();
  });
  if (byte < durable_.size())
    durable_[byte] ^= mask;
  if (byte < now_.size() && !dirty)
    now_[byte] ^= mask;
}

} // namespace terrace::simulation
