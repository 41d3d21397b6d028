#include "storage/index_journal.hpp"

#include "storage/volume_layout.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace terrace {

namespace {

constexpr uint64_t retry_records = 64; ///< after a failed checkpoint, doubled with each further failure
constexpr unsigned retry_doublings_max = 14;

/// Packs `count` records from the front of the queue into consecutive blocks.
std::shared_ptr<const aligned_buffer> pack(block_heading heading, std::deque<index_record>& line,
                                           size_t count) {
  size_t blocks = (count + records_per_block - 1) / records_per_block;
  auto buffer = std::make_shared<aligned_buffer>(blocks * record_block_bytes);
  for (size_t b = 0; b < blocks; ++b) {
    auto from = line.begin() + static_cast<ptrdiff_t>(b * records_per_block);
    std::vector<index_record> part(
        from, from + static_cast<ptrdiff_t>(std::min(count - b * records_per_block, records_per_block)));
    encode_block(heading, part,
                 std::span<std::byte, record_block_bytes>(buffer->data() + b * record_block_bytes,
                                                          record_block_bytes));
    if (heading.kind == block_kind::journal)
      ++heading.sequence;
    else
      ++heading.index;
  }
  line.erase(line.begin(), line.begin() + static_cast<ptrdiff_t>(count));
  return buffer;
}

} // namespace

index_journal::index_journal(const superblock& block, const journal_position& from)
    : block_(block), position_(from) {}

void index_journal::add(const index_record& record) {
  ++counts_.records;
  changed_ = true;
  pending_.push_back(record);
  // A device that accepts nothing must not fill memory: beyond a journalful of records only a checkpoint
  // helps.
  if (pending_.size() > journal_blocks() * records_per_block) {
    lose(pending_.size());
    pending_.clear();
  }
  assert(pending_.size() <= journal_blocks() * records_per_block);
}

void index_journal::lose(size_t records) {
  counts_.lost += records;
  lossy_ = true;
}

double index_journal::fill() const {
  return static_cast<double>(live_blocks()) / static_cast<double>(journal_blocks());
}

bool index_journal::checkpoint_due() const {
  return phase_ == phase::none && (lossy_ || fill() >= 0.75) && counts_.records >= checkpoint_not_before_;
}

void index_journal::begin_checkpoint() {
  assert(phase_ == phase::none);
  phase_ = header_doubtful_ ? phase::erase : phase::image;
  image_.clear();
  image_ended_ = false;
  image_blocks_ = 0;
  image_records_ = 0;
  image_left_out_ = 0;
  image_epoch_ = block_.epoch;
  image_sequence_ = position_.next_sequence;
  lossy_ = false;
  changed_ = !pending_.empty();
}

void index_journal::add_image(std::span<const index_record> records) {
  assert(!image_ended_);
  if (!takes_image())
    return; // the checkpoint has failed in the meantime
  for (const index_record& record : records) {
    if (image_records_ + image_.size() >= image_blocks_max() * records_per_block) {
      ++image_left_out_;
      continue;
    }
    if (record.kind == record_kind::publish)
      image_epoch_ = std::min(image_epoch_, epoch_of(record.generation));
    image_.push_back(record);
  }
}

void index_journal::end_image() { image_ended_ = true; }

void index_journal::forget(const std::optional<space_fingerprint>& space, uint64_t epoch,
                           std::function<void(bool)> done) {
  // No object is older than `oldest_epoch_`, so lower floors have no effect. With several paths they still
  // matter to a path that was absent, so they are kept as long as there is room, and longer while a path is
  // missing; without room, everything is forgotten instead.
  if (block_.path_count == 1)
    block_.forgotten_below = std::max(block_.forgotten_below, std::min(oldest_epoch_, block_.epoch));
  bool full = block_.floors.size() == superblock::floors_max && block_.missing == 0;
  uint64_t void_up_to = block_.path_count == 1 ? block_.forgotten_below : full ? oldest_epoch_ : 0;
  std::erase_if(block_.floors, [&](const space_floor& floor) { return floor.epoch <= void_up_to; });
  block_.epoch = std::max(block_.epoch, epoch);
  if (space)
    forget_space(block_, *space);
  else
    forget_all(block_);
  forgetting_.push_back({std::move(done)});
}

void index_journal::give_up_forgets() {
  for (forgetting& each : forgetting_)
    if (each.done)
      std::exchange(each.done, nullptr)(false);
}

bool index_journal::idle() const {
  return doing_ == doing::nothing && pending_.empty() && phase_ == phase::none && forgetting_.empty();
}

std::optional<journal_io> index_journal::next() {
  if (doing_ != doing::nothing)
    return std::nullopt;
  if (auto io = forget_step())
    return io;
  bool image_first = std::exchange(image_turn_, false) && image_is_ready();
  if (!image_first)
    if (auto io = write_journal()) {
      image_turn_ = true;
      return io;
    }
  if (auto io = image_is_ready() ? write_image() : checkpoint_step())
    return io;
  return std::nullopt;
}

std::optional<journal_io> index_journal::forget_step() {
  if (forgetting_.empty())
    return std::nullopt;
  doing_ = doing::superblock;
  journal_io io;
  if (forgetting_.front().steps_left % 2 != 0) {
    io.wanted = journal_io::action::sync;
    return io;
  }
  ++block_.sequence;
  auto buffer = std::make_shared<aligned_buffer>(superblock_bytes);
  encode(block_, std::span<std::byte, superblock_bytes>(buffer->data(), superblock_bytes));
  io.file_offset = superblock_offset(block_.sequence);
  io.memory = std::move(buffer);
  return io;
}

std::optional<journal_io> index_journal::write_journal() {
  if (pending_.empty())
    return std::nullopt;
  uint64_t place = position_.next_sequence % journal_blocks();
  uint64_t blocks = std::min(
      {journal_blocks() - live_blocks(), journal_blocks() - place, write_bytes_max / record_block_bytes});
  if (blocks == 0) {
    lose(pending_.size());
    pending_.clear();
    return std::nullopt;
  }
  writing_records_ = std::min<size_t>(pending_.size(), blocks * records_per_block);
  journal_io io;
  io.file_offset = block_.layout.journal_begin + place * record_block_bytes;
  io.memory =
      pack({block_kind::journal, block_.volume, position_.next_sequence, 0}, pending_, writing_records_);
  position_.next_sequence += io.memory->size() / record_block_bytes;
  doing_ = doing::journal;
  return io;
}

bool index_journal::image_is_ready() const {
  return phase_ == phase::image && !image_.empty() &&
         (image_ended_ || image_.size() * record_block_bytes >= write_bytes_max * records_per_block);
}

std::optional<journal_io> index_journal::write_image() {
  size_t count = std::min<size_t>(image_.size(), write_bytes_max / record_block_bytes * records_per_block);
  journal_io io;
  io.file_offset = checkpoint_area() + (1 + image_blocks_) * record_block_bytes;
  io.memory = pack({block_kind::image, block_.volume, position_.checkpoint_number + 1,
                    static_cast<uint32_t>(image_blocks_)},
                   image_, count);
  image_blocks_ += io.memory->size() / record_block_bytes;
  image_records_ += count;
  doing_ = doing::image;
  return io;
}

std::optional<journal_io> index_journal::checkpoint_step() {
  journal_io io;
  io.wanted = journal_io::action::sync;
  switch (phase_) {
    case phase::none: return std::nullopt;
    case phase::erase:
      doing_ = doing::erase;
      return write_header(std::make_shared<aligned_buffer>(checkpoint_header_bytes));
    case phase::erase_sync: doing_ = doing::erase_sync; return io;
    case phase::image:
      if (!image_ended_)
        return std::nullopt;
      phase_ = phase::image_sync;
      [[fallthrough]];
    case phase::image_sync: doing_ = doing::image_sync; return io;
    case phase::header: {
      auto buffer = std::make_shared<aligned_buffer>(checkpoint_header_bytes);
      encode(checkpoint_header{block_.volume, position_.checkpoint_number + 1, image_sequence_, image_blocks_,
                               image_records_},
             std::span<std::byte, checkpoint_header_bytes>(buffer->data(), checkpoint_header_bytes));
      doing_ = doing::header;
      return write_header(buffer);
    }
    case phase::header_sync: doing_ = doing::header_sync; return io;
  }
  return std::nullopt;
}

journal_io index_journal::write_header(const std::shared_ptr<aligned_buffer>& header) {
  journal_io io;
  io.file_offset = checkpoint_area();
  io.memory = header;
  return io;
}

void index_journal::completed(bool good) {
  assert(doing_ != doing::nothing);
  if (!good)
    ++counts_.failures;
  switch (std::exchange(doing_, doing::nothing)) {
    case doing::nothing: break;
    case doing::journal:
      ++counts_.writes;
      if (good)
        counts_.blocks += (writing_records_ + records_per_block - 1) / records_per_block;
      else
        lose(writing_records_);
      break;
    case doing::erase:
      phase_ = phase::erase_sync;
      if (!good)
        checkpoint_failed();
      break;
    case doing::erase_sync:
      phase_ = phase::image;
      header_doubtful_ = !good;
      if (!good)
        checkpoint_failed();
      break;
    case doing::image:
      if (!good)
        checkpoint_failed();
      break;
    case doing::image_sync:
      phase_ = phase::header;
      if (!good)
        checkpoint_failed();
      break;
    case doing::header:
      phase_ = phase::header_sync;
      header_doubtful_ = true;
      if (!good)
        checkpoint_failed();
      break;
    case doing::header_sync:
      header_doubtful_ = !good;
      if (good)
        checkpoint_is_durable();
      else
        checkpoint_failed();
      break;
    case doing::superblock: {
      forgetting& first = forgetting_.front();
      if (good && --first.steps_left > 0)
        break;
      auto done = std::move(first.done);
      forgetting_.pop_front();
      if (done)
        done(good);
      break;
    }
  }
}

void index_journal::checkpoint_failed() {
  phase_ = phase::none;
  image_.clear();
  image_ended_ = false;
  // The header may have reached the disk anyway. The next attempt uses the same number and area, and a crash in the
  // middle of its image would leave the old header with a mixture: so the header is erased first.
  lossy_ = true;
  changed_ = true;
  failures_in_row_ = std::min(failures_in_row_ + 1, retry_doublings_max);
  checkpoint_not_before_ = counts_.records + (retry_records << failures_in_row_);
}

void index_journal::checkpoint_is_durable() {
  phase_ = phase::none;
  image_ended_ = false;
  ++position_.checkpoint_number;
  position_.live_from = image_sequence_;
  oldest_epoch_ = image_epoch_;
  failures_in_row_ = 0;
  counts_.unrecorded = image_left_out_;
  ++counts_.checkpoints;
}

void journal_events::settle() {
  auto earlier = [](const event& a, const event& b) {
    return std::tie(a.offset, a.generation, a.removes) < std::tie(b.offset, b.generation, b.removes);
  };
  std::sort(last_.begin(), last_.end(), earlier);
  size_t kept = 0;
  for (size_t i = 0; i < last_.size(); ++i)
    if (i + 1 == last_.size() || last_[i + 1].offset != last_[i].offset)
      last_[kept++] = last_[i];
  last_.resize(kept);
}

bool journal_events::has_later(const index_record& record) const {
  auto found = std::lower_bound(last_.begin(), last_.end(), record.offset,
                                [](const event& one, uint64_t offset) { return one.offset < offset; });
  return found != last_.end() && found->offset == record.offset && found->generation >= record.generation;
}

} // namespace terrace
