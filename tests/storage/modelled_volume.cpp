#include "modelled_volume.hpp"

#include "storage/object_check.hpp"
#include "tests/support/stored_objects.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {

using namespace test;

modelled_volume::modelled_volume(uint64_t seed) : dice_(seed), device_(file_bytes) {
  superblock block;
  block.volume.bytes = {1, 2, 3};
  block.capacity_bytes = file_bytes;
  block.layout = layout_for(file_bytes);
  open(block);
}

void modelled_volume::open(superblock block) {
  ++block.epoch;
  aligned_buffer bytes(superblock_bytes);
  for (int copy = 0; copy < 2; ++copy) {
    ++block.sequence;
    encode(block, std::span<std::byte, superblock_bytes>(bytes.data(), superblock_bytes));
    device_.write(superblock_offset(block.sequence), bytes.bytes());
    device_.sync();
  }
  auto found = recover(device_, block, file_bytes - block.layout.extents_begin);
  check(found);
  journal_.emplace(block, found.position);
  index_.clear();
  extents_.clear();
  told_.clear();
  for (const index_record& object : found.objects) // by generation: the newest object of a key stays
    index_[{object.space, chunk_of(object.chunk)}] = object;
  for (const auto& [key, object] : index_)
    extents_[object.offset] = object.physical_bytes;
  for (const recovered_space& space : found.spaces)
    told_[space.number] = true;
  journalled_ = index_;
  exact_ = index_.size() == found.objects.size();
  found_ = found.counts;
  next_generation_ = found.position.next_generation;
  in_flight_.reset();
  image_from_.reset();
}

void modelled_volume::store(uint32_t space, uint64_t chunk) {
  index_record record;
  record.space = space;
  record.chunk = digest_of(chunk);
  record.payload_bytes = 1 + static_cast<uint32_t>(dice_() % 9000);
  record.physical_bytes = physical_bytes_for(record.payload_bytes);
  if (index_.contains({space, chunk}))
    return;
  for (const auto& [offset, bytes] : extents_)
    if (offset >= record.offset + record.physical_bytes)
      break;
    else
      record.offset = offset + bytes;
  if (record.offset + record.physical_bytes > file_bytes - journal_->block().layout.extents_begin)
    return;
  record.generation = next_generation_++;
  write_object(device_, journal_->block(), record);
  if (!std::exchange(told_[space], true))
    journal_->add(space_record(space, fingerprint_of(space)));
  journal_->add(record);
  index_[{space, chunk}] = record;
  extents_[record.offset] = record.physical_bytes;
}

/// Checks the object as a load would. An object that passes and is not the stored one must never occur.
bool modelled_volume::is_intact(const index_record& record) {
  object_checker checker(device_, journal_->block(), 2 * disk_alignment_bytes);
  if (checker.check(record, fingerprint_of(record.space)).state != stored_state::intact)
    return false;
  aligned_buffer bytes(record.physical_bytes);
  EXPECT_TRUE(device_.read(journal_->block().layout.extents_begin + record.offset, bytes.bytes()));
  EXPECT_TRUE(std::ranges::equal(bytes.bytes().subspan(object_header_bytes, record.payload_bytes),
                                 content_of(record)))
      << "wrong bytes would be served";
  return true;
}

void modelled_volume::evict() {
  if (index_.empty())
    return;
  auto victim = std::next(index_.begin(), static_cast<ptrdiff_t>(dice_() % index_.size()));
  journal_->add(removal_of(victim->second));
  extents_.erase(victim->second.offset);
  index_.erase(victim);
}

void modelled_volume::clear(std::optional<uint32_t> space) {
  std::optional<space_fingerprint> fingerprint;
  if (space)
    fingerprint = fingerprint_of(*space);
  uint64_t floor = journal_->block().epoch + 1;
  journal_->forget(fingerprint, 0, [this, space, floor](bool durable) {
    for (uint32_t s = 1; durable && s <= spaces; ++s)
      if (!space || s == *space)
        answered_floors_[s] = std::max(answered_floors_[s], floor);
  });
  next_generation_ = std::max(next_generation_, first_generation(journal_->block().epoch));
  std::erase_if(index_, [&](const auto& entry) {
    if (space && entry.first.first != *space)
      return false;
    extents_.erase(entry.second.offset);
    return true;
  });
  std::erase_if(journalled_, [&](const auto& entry) { return !space || entry.first.first == *space; });
  exact_ = false; // until the clear is durable, cleared objects may be found or not
}

void modelled_volume::checkpoint_step(size_t slots) {
  if (!journal_->checkpoint_in_progress()) {
    journal_->begin_checkpoint();
    image_from_ = name{};
    std::vector<index_record> all;
    for (const auto& [space, told] : told_)
      all.push_back(space_record(space, fingerprint_of(space)));
    journal_->add_image(all);
    return;
  }
  if (!image_from_ || !journal_->wants_image())
    return;
  std::vector<index_record> part;
  auto next = index_.lower_bound(*image_from_);
  for (; next != index_.end() && part.size() < slots; ++next)
    part.push_back(next->second);
  journal_->add_image(part);
  if (next == index_.end()) {
    journal_->end_image();
    image_from_.reset();
  } else {
    image_from_ = next->first;
  }
}

bool modelled_volume::begin_io() {
  if (in_flight_)
    return true;
  in_flight_ = journal_->next();
  return in_flight_.has_value();
}

bool modelled_volume::complete_io(bool good) {
  if (!in_flight_)
    return false;
  auto io = std::exchange(in_flight_, std::nullopt);
  if (io->wanted == journal_io::action::sync) {
    if (good)
      device_.sync();
  } else if (good) {
    device_.write(io->file_offset, io->memory->bytes());
    remember(*io);
  } else { // after an error or a short write, some of it may be there
    device_.write_part(io->file_offset, io->memory->bytes(), dice_() % 3);
    exact_ = false;
  }
  uint64_t checkpoints = journal_->counts().checkpoints;
  journal_->completed(good);
  if (journal_->counts().checkpoints != checkpoints)
    exact_ = false; // an image contains things that the journal has not been told yet
  return true;
}

void modelled_volume::remember(const journal_io& written) {
  for (uint64_t at = 0; at < written.memory->size(); at += record_block_bytes) {
    auto view = read_block(
        block_kind::journal, journal_->block().volume,
        std::span<const std::byte, record_block_bytes>(written.memory->data() + at, record_block_bytes));
    if (view.state == block_state::good)
      for (size_t i = 0; i < view.records; ++i)
        apply(journalled_, *decode_record(view.record(i)));
  }
}

void modelled_volume::apply(index& to, const index_record& record) const {
  name key{record.space, chunk_of(record.chunk)};
  if (record.kind == record_kind::publish)
    to[key] = record;
  else if (record.kind == record_kind::remove)
    to.erase(key);
}

void modelled_volume::shut_down() {
  while (complete_io() || begin_io()) {
  }
  while (journal_->checkpoint_in_progress() ||
         journal_->changed()) { // a checkpoint in progress may lack new objects
    checkpoint_step(100);
    while (begin_io())
      complete_io();
  }
}

size_t modelled_volume::restart(const simulated_device::crash_faults& faults) {
  bool killed = faults.lost == 0 && faults.torn == 0;
  if (in_flight_ && in_flight_->wanted == journal_io::action::write) {
    // A write in progress arrives completely, partly or not at all.
    uint64_t blocks = in_flight_->memory->size() / record_block_bytes;
    uint64_t arrived = dice_() % (blocks + 1);
    device_.write_part(in_flight_->file_offset, in_flight_->memory->bytes(), arrived);
    if (arrived == blocks)
      remember(*in_flight_);
    else if (arrived != 0)
      exact_ = false;
  }
  device_.crash(faults, dice_);
  auto expected = killed && exact() ? std::optional(journalled_) : std::nullopt;
  aligned_buffer both(2 * superblock_bytes);
  EXPECT_TRUE(device_.read(0, both.bytes()));
  auto block = newest_superblock(std::span<const std::byte, 2 * superblock_bytes>(both.data(), both.size()));
  if (!block) {
    ADD_FAILURE() << block.error().text;
    return 0;
  }
  open(*block);
  if (expected) {
    EXPECT_TRUE(index_ == *expected) << "the index is not what the journal was told: " << index_.size()
                                     << " objects, " << expected->size() << " expected";
  }
  return static_cast<size_t>(
      std::ranges::count_if(index_, [this](const auto& entry) { return is_intact(entry.second); }));
}

void modelled_volume::check(const recovered_volume& found) {
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  uint64_t last = 0;
  for (const index_record& object : found.objects) {
    EXPECT_GT(object.generation, last) << "by generation, and each but once";
    last = object.generation;
    EXPECT_GE(epoch_of(object.generation), answered_floors_[object.space]) << "what was cleared is back";
    EXPECT_TRUE(std::ranges::any_of(found.spaces, [&](const recovered_space& space) {
      return space.number == object.space && space.fingerprint == fingerprint_of(object.space);
    }));
    extents.emplace_back(object.offset, object.offset + object.physical_bytes);
  }
  std::ranges::sort(extents);
  for (size_t i = 0; i < extents.size(); ++i) {
    EXPECT_LE(i == 0 ? 0 : extents[i - 1].second, extents[i].first) << "extents overlap";
    EXPECT_LE(extents[i].second, file_bytes - layout_for(file_bytes).extents_begin);
  }
}

} // namespace terrace
