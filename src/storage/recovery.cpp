#include "storage/recovery.hpp"

#include "storage/index_journal.hpp"
#include "storage/volume_layout.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <utility>

namespace terrace {

namespace {

constexpr uint64_t read_bytes = 4ULL << 20;

// No real volume counts this far. Larger numbers are rejected, because counting on from them would overflow.
constexpr uint64_t sequence_max = 1ULL << 63; ///< bounds journal blocks, and the number of a checkpoint
constexpr uint32_t space_number_max = 1U << 31;

/// Decodes like `decode_record`, with an upper bound on numbers.
std::optional<index_record> believable(std::span<const std::byte, index_record_bytes> bytes) {
  auto record = decode_record(bytes);
  if (record && (record->space > space_number_max || epoch_of(record->generation) >= epoch_max))
    return std::nullopt;
  return record;
}

class recovery {
 public:
  recovery(volume_reader& from, const superblock& block, uint64_t arena_bytes)
      : from_(from), block_(block), arena_bytes_(arena_bytes), buffer_(piece_bytes(block.layout)),
        next_buffer_(buffer_.size()), events_(arena_bytes) {}

  recovered_volume run() {
    find_checkpoint();
    read_journal();
    read_image();
    events_.for_each_published([this](const index_record& record) { found_.objects.add(record); });
    found_.position.next_generation = first_generation(block_.epoch);
    keep_what_counts();
    bool overlap = find_overlapping();
    found_.objects.order();
    if (overlap)
      keep_the_newest_of_overlapping();
    name_spaces();
    return std::move(found_);
  }

 private:
  static uint64_t piece_bytes(const volume_layout& layout) {
    return std::min(read_bytes, std::max(layout.journal_bytes, layout.checkpoint_bytes));
  }

  /// Calls `use(block index, bytes)` for each readable block. The next piece is read while one is processed.
  template <class Use>
  void for_each_block(uint64_t begin, uint64_t blocks, Use&& use) {
    uint64_t piece = buffer_.size() / record_block_bytes;
    auto size = [&](uint64_t first) { return std::min(blocks - first, piece) * record_block_bytes; };
    auto read = [&](uint64_t first, aligned_buffer& into) {
      return from_.read(begin + first * record_block_bytes, into.bytes().first(size(first))).has_value();
    };
    bool good = blocks != 0 && read(0, buffer_);
    for (uint64_t first = 0; first < blocks; first += piece) {
      std::future<bool> next;
      if (!good)
        read_one_by_one(begin, first, size(first) / record_block_bytes, use);
      if (first + piece < blocks)
        // If it gets no thread, std::async reads on demand.
        next = std::async(read, first + piece, std::ref(next_buffer_));
      if (good)
        use_each(first, buffer_.bytes().first(size(first)), use);
      if (next.valid()) {
        good = next.get();
        std::swap(buffer_, next_buffer_);
      }
    }
  }

  template <class Use>
  void use_each(uint64_t first, std::span<const std::byte> bytes, Use& use) {
    found_.counts.bytes_read += bytes.size();
    for (uint64_t at = 0; at < bytes.size(); at += record_block_bytes)
      use(first + at / record_block_bytes,
          std::span<const std::byte, record_block_bytes>(bytes.data() + at, record_block_bytes));
  }

  /// After an error, reads block by block, so that only unreadable blocks are lost.
  template <class Use>
  void read_one_by_one(uint64_t begin, uint64_t first, uint64_t count, Use&& use) {
    auto into = buffer_.bytes().first<record_block_bytes>();
    for (uint64_t b = first; b < first + count; ++b)
      if (from_.read(begin + b * record_block_bytes, into)) {
        found_.counts.bytes_read += into.size();
        use(b, std::span<const std::byte, record_block_bytes>(into));
      } else {
        ++found_.counts.damaged_blocks;
      }
  }

  void find_checkpoint() {
    for (uint64_t area = 0; area < 2; ++area)
      for_each_block(block_.layout.checkpoint_area(area), 1, [&](uint64_t, auto bytes) {
        auto header = decode_checkpoint_header(block_.volume, bytes);
        if (!header || header->number % 2 != area || header->number > sequence_max ||
            header->journal_sequence > sequence_max ||
            header->image_blocks >= block_.layout.checkpoint_bytes / record_block_bytes)
          return;
        if (!checkpoint_ || checkpoint_->number < header->number)
          checkpoint_ = *header;
      });
  }

  void read_journal() {
    uint64_t ring = block_.layout.journal_bytes / record_block_bytes;
    uint64_t from = checkpoint_ ? checkpoint_->journal_sequence : 1;
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    std::vector<uint64_t> damaged; // places in the ring
    for_each_block(block_.layout.journal_begin, ring, [&](uint64_t index, auto bytes) {
      block_view view = read_block(block_kind::journal, block_.volume, bytes);
      if (view.state == block_state::damaged)
        damaged.push_back(index);
      if (view.state != block_state::good || view.heading.sequence % ring != index ||
          view.heading.sequence > sequence_max)
        return;
      highest = std::max(highest, view.heading.sequence);
      if (view.heading.sequence < from)
        return;
      lowest = std::min(lowest, view.heading.sequence);
      ++found_.counts.journal_blocks;
      for (size_t i = 0; i < view.records; ++i)
        if (auto record = believable(view.record(i)))
          note(*record);
        else
          ++found_.counts.damaged_records;
    });
    found_.position.checkpoint_number = checkpoint_ ? checkpoint_->number : 0;
    events_.settle();
    // Numbers are never reused, so that no old block can follow a new one.
    found_.position.next_sequence = std::max(highest + 1, from);
    found_.position.live_from = checkpoint_ ? from : std::min(lowest, found_.position.next_sequence);
    uint64_t expected = found_.position.next_sequence - found_.position.live_from;
    if (expected > ring) { // happens only if a checkpoint was lost to damage
      found_.position.live_from = found_.position.next_sequence - ring;
      expected = ring;
    }
    // Blocks that nobody needs may contain anything: the begin of a write that a crash cut off, or bytes from
    // before the layout changed.
    uint64_t first = found_.position.live_from % ring;
    auto needed = static_cast<uint64_t>(std::count_if(
        damaged.begin(), damaged.end(), [&](uint64_t at) { return (at + ring - first) % ring < expected; }));
    found_.counts.damaged_blocks += needed;
    found_.counts.missing_blocks += expected - std::min(expected, found_.counts.journal_blocks + needed);
  }

  void note(const index_record& record) {
    if (record.kind == record_kind::space)
      define(record);
    else
      events_.add(record);
  }

  void read_image() {
    if (!checkpoint_)
      return;
    uint64_t area = block_.layout.checkpoint_area(checkpoint_->number % 2);
    found_.objects.reserve(std::min(checkpoint_->records, checkpoint_->image_blocks * records_per_block) +
                           events_.size());
    uint64_t good = 0;
    for_each_block(area + record_block_bytes, checkpoint_->image_blocks, [&](uint64_t index, auto bytes) {
      block_view view = read_block(block_kind::image, block_.volume, bytes);
      if (view.state == block_state::damaged)
        ++found_.counts.damaged_blocks;
      if (view.state != block_state::good || view.heading.sequence != checkpoint_->number ||
          view.heading.index != index)
        return;
      ++good;
      for (size_t i = 0; i < view.records; ++i)
        if (auto record = believable(view.record(i)))
          add_from_image(*record);
        else
          ++found_.counts.damaged_records;
    });
    found_.counts.missing_blocks += checkpoint_->image_blocks - good;
  }

  void add_from_image(const index_record& record) {
    if (record.kind == record_kind::space) {
      define(record);
      return;
    }
    if (record.kind != record_kind::publish)
      return;
    if (!events_.supersedes(record))
      found_.objects.add(record);
  }

  void define(const index_record& record) {
    spaces_[record.space] = {record.chunk.bytes, floor_of(block_, record.chunk.bytes), 0};
    found_.next_space_number = std::max(found_.next_space_number, record.space + 1);
  }

  void keep_what_counts() {
    auto& counts = found_.counts;
    found_.objects.erase_if([&](const index_record& object) {
      found_.next_space_number = std::max(found_.next_space_number, object.space + 1);
      // A failed clear may have left objects of an epoch that is not in the superblock.
      found_.position.next_generation = std::max(found_.position.next_generation, object.generation + 1);
      auto space = spaces_.find(object.space);
      bool forgotten = space != spaces_.end() && epoch_of(object.generation) < space->second.floor;
      bool outside = object.offset >= arena_bytes_ || object.physical_bytes > arena_bytes_ - object.offset;
      counts.unknown_space += space == spaces_.end();
      counts.forgotten += forgotten;
      counts.outside += outside;
      return space == spaces_.end() || forgotten || outside;
    });
  }

  /// Reads the objects as they were added, and notes their spaces.
  bool find_overlapping() {
    extent_claims claims(arena_bytes_);
    bool overlap = false;
    for (const index_record& object : found_.objects) {
      overlap = !claims.claim(object.offset, object.physical_bytes) || overlap;
      ++spaces_[object.space].objects;
    }
    return overlap;
  }

  void keep_the_newest_of_overlapping() {
    extent_claims newest(arena_bytes_);
    std::vector<bool> stays(found_.objects.size());
    for (size_t i = found_.objects.size(); i-- > 0;)
      stays[i] = newest.claim(found_.objects[i].offset, found_.objects[i].physical_bytes);
    size_t i = 0;
    found_.counts.overlapping += found_.objects.erase_if([&](const index_record& object) {
      spaces_[object.space].objects -= !stays[i];
      return !stays[i++];
    });
  }

  void name_spaces() {
    for (const auto& [number, space] : spaces_)
      if (space.objects != 0)
        found_.spaces.push_back({number, space.fingerprint});
  }

  struct known_space {
    space_fingerprint fingerprint{};
    uint64_t floor = 0;
    uint64_t objects = 0;
  };

  volume_reader& from_;
  const superblock& block_;
  uint64_t arena_bytes_;
  aligned_buffer buffer_;
  aligned_buffer next_buffer_;
  std::optional<checkpoint_header> checkpoint_;
  journal_events events_;
  std::map<uint32_t, known_space> spaces_;
  recovered_volume found_;
};

constexpr unsigned digit_bits = 11; ///< the counters of a digit stay in the first-level cache
constexpr size_t digit_values = size_t{1} << digit_bits;

struct ordered {
  uint64_t generation;
  uint32_t place;
};

size_t digit_of(uint64_t generation, unsigned shift) { return generation >> shift & (digit_values - 1); }

/// One pass of a radix sort from the lowest digit up.
void sort_by_digit(const std::vector<ordered>& from, std::vector<ordered>& to, unsigned shift) {
  std::array<size_t, digit_values> begin{};
  for (const ordered& one : from)
    ++begin[digit_of(one.generation, shift)];
  size_t sum = 0;
  for (size_t& count : begin)
    sum += std::exchange(count, sum);
  for (const ordered& one : from)
    to[begin[digit_of(one.generation, shift)]++] = one;
}

} // namespace

void ordered_records::order() {
  auto older = [](const index_record& a, const index_record& b) { return a.generation < b.generation; };
  if (std::is_sorted(records_.begin(), records_.end(), older))
    return;
  assert(records_.size() < UINT32_MAX);
  std::vector<ordered> order(records_.size()), other(records_.size());
  uint64_t differing = 0;
  for (size_t i = 0; i < records_.size(); ++i) {
    order[i] = {records_[i].generation, static_cast<uint32_t>(i)};
    differing |= records_[i].generation ^ records_[0].generation;
  }
  for (unsigned shift = 0; shift < 64; shift += digit_bits)
    if (digit_of(differing, shift) != 0) {
      sort_by_digit(order, other, shift);
      order.swap(other);
    }
  other = {};
  places_.reserve(order.size());
  for (const ordered& one : order)
    places_.push_back(one.place);
  by_place_ = true;
}

recovered_volume recover(volume_reader& from, const superblock& block, uint64_t arena_bytes) {
  return recovery(from, block, arena_bytes).run();
}

} // namespace terrace
