// Whatever bytes a store's file holds: opening it ends in a superblock whose layout fits the file, or in a stated reason,
// and recovery ends in objects that may be served and in a position at which the journal goes on.
//
// The input is a list of edits, 12 bytes each, made to a small sound store: without that no mutation would get past the
// magic numbers and checksums. An edit may renew the checksum of the block it touched, as a forger or a faulty daemon
// would.
#include "storage/index_journal.hpp"
#include "storage/recovery.hpp"
#include "storage/volume_layout.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

using namespace terrace;

namespace {

constexpr uint64_t block_bytes = 4096;
constexpr uint64_t capacity_bytes = 1 << 20;
constexpr size_t edits_max = 64;

void require(bool truth) {
  if (!truth)
    std::abort();
}

using block_span = std::span<std::byte, block_bytes>;
using block_view_span = std::span<const std::byte, block_bytes>;

/// The metadata of a store, and one object's header behind it. The rest of the file is zeros.
struct image {
  std::vector<std::byte> bytes;

  block_span block(size_t i) { return block_span(bytes.data() + i * block_bytes, block_bytes); }
  block_view_span block(size_t i) const {
    return block_view_span(bytes.data() + i * block_bytes, block_bytes);
  }
  size_t blocks() const { return bytes.size() / block_bytes; }
};

index_record object(uint64_t number, uint64_t extent, uint64_t epoch) {
  index_record record;
  record.space = static_cast<uint32_t>(1 + number % 2);
  record.chunk.bytes[0] = static_cast<uint8_t>(number);
  record.payload_bytes = 5000;
  record.physical_bytes = physical_bytes_for(record.payload_bytes);
  record.offset = extent * record.physical_bytes;
  record.generation = first_generation(epoch) + number;
  return record;
}

superblock sound_superblock() {
  superblock block;
  block.volume.bytes.fill(7);
  block.owner.group = "default";
  block.sequence = 2;
  block.epoch = 3;
  block.forgotten_below = 1;
  block.capacity_bytes = capacity_bytes;
  block.layout = layout_for(capacity_bytes);
  block.floors.push_back({space_fingerprint{2}, 2});
  return block;
}

/// Two superblocks, a checkpoint with six objects of two spaces, and a journal with what came after it.
image sound_volume() {
  superblock block = sound_superblock();
  const volume_layout& layout = block.layout;
  image made{std::vector<std::byte>(layout.extents_begin + block_bytes)};
  encode(block, made.block(0));
  block.sequence = 1;
  encode(block, made.block(1));

  size_t area = layout.checkpoint_area(0) / block_bytes;
  std::vector<index_record> records{space_record(1, {1}), space_record(2, {2})};
  for (uint64_t i = 0; i < 6; ++i)
    records.push_back(object(i, i, 2));
  encode(checkpoint_header{block.volume, 2, 5, 1, records.size()}, made.block(area));
  encode_block({block_kind::image, block.volume, 2, 0}, records, made.block(area + 1));

  size_t journal = layout.journal_begin / block_bytes;
  for (uint64_t sequence = 4; sequence < 8; ++sequence) {
    std::vector<index_record> changes{space_record(3, {3}), object(10 + sequence, sequence, 3),
                                      removal_of(object(sequence - 4, sequence - 4, 2))};
    encode_block({block_kind::journal, block.volume, sequence, 0}, changes, made.block(journal + sequence));
  }

  object_header header{
      .identity = {.space = {1}, .chunk = {}, .generation = 9, .epoch = 2, .volume = block.volume},
      .payload_bytes = 5000,
      .physical_bytes = physical_bytes_for(5000)};
  encode(header, made.block(made.blocks() - 1));
  return made;
}

void put(block_span block, size_t at, uint64_t value) {
  std::memcpy(block.data() + at, &value, sizeof value);
}

/// As docs/disk-format.md has it, by what the block's magic says it is.
void renew_checksum(block_span block) {
  static const std::map<std::string_view, size_t> whole = {
      {"TERRSTOR", 216}, {"TERRCHKP", 64}, {"TERROBJ", 144}};
  std::string_view magic(reinterpret_cast<const char*>(block.data()), 8);
  if (magic.back() == '\0')
    magic.remove_suffix(1);
  if (auto found = whole.find(magic); found != whole.end()) {
    put(block, found->second, 0);
    put(block, found->second, XXH3_64bits(block.data(), block.size()));
  } else {
    uint64_t front = XXH3_64bits(block.data(), 40);
    put(block, 40, XXH3_64bits_withSeed(block.data() + 48, block.size() - 48, front));
  }
}

/// Which blocks are worth an edit: all that are not zeros, and a few more of each part.
size_t chosen_block(const image& store, uint8_t choice) {
  static const std::vector<size_t> written = [&] {
    std::vector<size_t> found;
    for (size_t i = 0; i < store.blocks(); ++i)
      if (store.block(i)[0] != std::byte{0})
        found.push_back(i);
    return found;
  }();
  return choice < 128 ? written[choice % written.size()] : choice % store.blocks();
}

/// Where in a block: any byte, or the begin of a field of a heading or of a record.
size_t chosen_place(uint16_t choice) {
  constexpr size_t fields[] = {0, 1, 2, 4, 8, 12, 16, 48, 80, 88};
  if (choice % 3 == 0)
    return choice / 3 % (block_bytes - 8);
  if (choice % 3 == 1)
    return choice / 3 % 32 * 8; // a heading
  size_t record = choice / 3 / std::size(fields) % records_per_block;
  return record_block_heading_bytes + record * index_record_bytes + fields[choice / 3 % std::size(fields)];
}

struct edit {
  uint8_t block;
  uint8_t what; ///< lowest bit: renew the checksum
  uint16_t place;
  uint64_t value;
};
constexpr size_t edit_bytes = 12;

void apply(const edit& change, image& store) {
  block_span block = store.block(chosen_block(store, change.block));
  size_t place = chosen_place(change.place);
  switch (change.what / 2 % 6) {
    case 0: put(block, place, change.value); break;
    case 1: block[place] ^= static_cast<std::byte>(change.value); break;
    case 2: std::memcpy(block.data() + place, &change.value, 1 + change.value % 4); break;
    case 3:
      std::fill(block.begin() + static_cast<ptrdiff_t>(place), block.end(), std::byte{0});
      break; // torn
    case 4:  // misplaced
      std::memmove(block.data(), store.block(chosen_block(store, static_cast<uint8_t>(change.value))).data(),
                   block_bytes);
      break;
    case 5: { // a number a little off
      uint64_t number;
      std::memcpy(&number, block.data() + place, sizeof number);
      put(block, place, number + static_cast<uint64_t>(static_cast<int8_t>(change.value)));
      break;
    }
  }
  if (change.what & 1)
    renew_checksum(block);
}

/// Checks that nothing outside the file is asked for.
class image_reader : public volume_reader {
 public:
  explicit image_reader(const image& store) : store_(store) {}

  result<void> read(uint64_t file_offset, std::span<std::byte> into) override {
    require(file_offset % block_bytes == 0 && into.size() % block_bytes == 0);
    require(reinterpret_cast<uintptr_t>(into.data()) % block_bytes == 0);
    require(file_offset <= capacity_bytes && into.size() <= capacity_bytes - file_offset);
    std::fill(into.begin(), into.end(), std::byte{0});
    if (file_offset < store_.bytes.size())
      std::copy_n(store_.bytes.begin() + static_cast<ptrdiff_t>(file_offset),
                  std::min(into.size(), store_.bytes.size() - file_offset), into.begin());
    return {};
  }

 private:
  const image& store_;
};

void check_objects(const recovered_volume& found, const superblock& block, uint64_t arena_bytes) {
  std::map<uint32_t, space_fingerprint> spaces;
  for (const recovered_space& space : found.spaces) {
    require(spaces.emplace(space.number, space.fingerprint).second);
    require(space.number < found.next_space_number);
  }
  std::vector<std::pair<uint64_t, uint64_t>> extents;
  uint64_t last = 0;
  for (const index_record& object : found.objects) {
    require(object.kind == record_kind::publish && object.generation >= last);
    last = object.generation;
    auto space = spaces.find(object.space);
    require(space != spaces.end());
    require(epoch_of(object.generation) >= floor_of(block, space->second));
    require(object.offset < arena_bytes && object.physical_bytes <= arena_bytes - object.offset);
    require(object.physical_bytes >= physical_bytes_for(object.payload_bytes));
    extents.emplace_back(object.offset, object.offset + object.physical_bytes);
    std::array<std::byte, index_record_bytes> again;
    encode(object, again);
    require(decode_record(again) == object);
  }
  require(found.objects.empty() || found.position.next_generation > last);
  std::sort(extents.begin(), extents.end());
  for (size_t i = 1; i < extents.size(); ++i)
    require(extents[i - 1].second <= extents[i].first);
}

/// The journal goes on where recovery says, within its part of the file.
void check_position(const recovered_volume& found, const superblock& block) {
  const volume_layout& layout = block.layout;
  const journal_position& position = found.position;
  require(position.next_sequence >= position.live_from);
  require(position.next_sequence - position.live_from <= layout.journal_bytes / record_block_bytes);
  index_journal journal(block, position);
  journal.add(object(1, 1, 3));
  journal.begin_checkpoint();
  std::vector<index_record> image;
  for (const index_record& object : found.objects)
    image.push_back(object);
  journal.add_image(image);
  journal.end_image();
  for (int i = 0; i < 8; ++i) {
    auto io = journal.next();
    if (!io)
      break;
    if (io->wanted == journal_io::action::write) {
      require(io->file_offset >= layout.journal_begin && io->file_offset % block_bytes == 0);
      require(io->file_offset + io->memory->size() <= layout.extents_begin);
    }
    journal.completed(true);
  }
}

void check_object_header(const image& store) {
  auto header = decode(store.block(store.blocks() - 1));
  require(header || !header.error().text.empty());
  if (!header)
    return;
  std::array<std::byte, block_bytes> again;
  encode(*header, again);
  auto same = decode(again);
  require(same && *same == *header);
  object_identity other = header->identity;
  require(matches(*header, other).has_value());
  other.epoch ^= 1;
  require(!matches(*header, other));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const image sound = sound_volume();
  image store = sound;
  for (size_t i = 0; i < std::min(size / edit_bytes, edits_max); ++i) {
    edit change;
    const uint8_t* from = data + i * edit_bytes;
    change.block = from[0];
    change.what = from[1];
    std::memcpy(&change.place, from + 2, sizeof change.place);
    std::memcpy(&change.value, from + 4, sizeof change.value);
    apply(change, store);
  }
  check_object_header(store);
  auto block = newest_superblock(
      std::span<const std::byte, 2 * superblock_bytes>(store.bytes.data(), 2 * superblock_bytes));
  require(block || !block.error().text.empty());
  if (!block || !fits(block->layout, capacity_bytes))
    return 0;
  std::array<std::byte, superblock_bytes> again;
  encode(*block, again);
  require(decode_superblock(again) == *block);
  require(block->layout.extents_begin <= capacity_bytes);
  uint64_t arena_bytes = capacity_bytes - block->layout.extents_begin;
  image_reader reader(store);
  recovered_volume found = recover(reader, *block, arena_bytes);
  check_objects(found, *block, arena_bytes);
  check_position(found, *block);
  return 0;
}
