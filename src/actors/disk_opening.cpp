#include "actors/disk_opening.hpp"

#include "storage/store_reader.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::actors {

namespace {
constexpr uint64_t physical_bytes_max = 32ULL << 30; ///< of an entry of the table
}

result<disk_opening> disk_opening::open(const extent_file_options& options, const tier_plan& plan) {
  auto file = extent_file::open(options);
  if (!file)
    return tl::unexpected(file.error());
  disk_opening opening;
  opening.file_ = std::make_shared<const extent_file>(std::move(*file));
  auto space = make_space(plan, opening.file_->extents_bytes(), 0);
  if (!space)
    return tl::unexpected(space.error());
  opening.space_ = std::move(*space);
  const superblock& block = opening.file_->block();
  if (opening.file_->made_new()) {
    opening.found_.position.next_generation = first_generation(block.epoch);
  } else {
    file_reader reader(opening.file_->fd());
    opening.found_ = recover(reader, block, opening.file_->extents_bytes());
  }
  opening.store_spaces_ = store_spaces(opening.found_.next_space_number);
  opening.objects_ =
      std::make_unique<tier_state>(tier_kind::disk, durable_index(opening.found_.position.next_generation));
  return opening;
}

void disk_opening::name_spaces(std::span<const space_id> ids) {
  assert(ids.size() == found_.spaces.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == space_id{})
      continue;
    ids_.emplace_back(found_.spaces[i].number, ids[i]);
    store_spaces_.add(ids[i], found_.spaces[i].number, found_.spaces[i].fingerprint);
  }
  std::sort(ids_.begin(), ids_.end());
}

bool disk_opening::restore(size_t objects) {
  auto records = std::span<const index_record>(found_.objects)
                     .subspan(restored_, std::min(objects, found_.objects.size() - restored_));
  std::vector<space_id> spaces;
  spaces.reserve(records.size());
  for (const index_record& record : records) {
    auto named = std::lower_bound(ids_.begin(), ids_.end(), std::pair(record.space, space_id{}));
    bool known = named != ids_.end() && named->first == record.space && record.pool <= UINT8_MAX &&
                 record.physical_bytes < physical_bytes_max;
    spaces.push_back(known ? named->second : space_id{});
    unplaced_ += !known;
  }
  objects_->restore(records, spaces);
  restored_ += records.size();
  return restored_ < found_.objects.size();
}

void disk_opening::place() {
  std::vector<std::pair<extent, uint64_t>> taken; // and the payload
  taken.reserve(objects_->table().size());
  objects_->table().for_each([&](const resident& object) {
    taken.push_back({{object.offset(), object.physical_bytes()}, object.payload_bytes()});
  });
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return a.first.offset < b.first.offset; });
  std::vector<extent> extents;
  std::vector<uint64_t> requested;
  for (const auto& [place, payload] : taken) {
    extents.push_back(place);
    requested.push_back(physical_bytes_for(payload));
  }
  if (space_->adopt(extents, requested))
    return;
  std::vector<object_id> refused;
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < extents.size(); ++i)
    if (!space_->adopt({&extents[i], 1}, {&requested[i], 1}))
      offsets.push_back(extents[i].offset);
  const resident_table& table = objects_->table();
  for (uint32_t slot = 0; slot < table.slots(); ++slot)
    if (readable(table.at_slot(slot).state()) &&
        std::binary_search(offsets.begin(), offsets.end(), table.at_slot(slot).offset()))
      refused.push_back(table.id_at(slot));
  unplaced_ += refused.size();
  objects_->discard(refused);
}

opened_disk disk_opening::finish() {
  found_.objects = {}; // for large stores this is gigabytes
  opened_disk opened;
  opened.file = std::move(file_);
  opened.objects = std::move(objects_);
  opened.space = std::move(space_);
  opened.position = found_.position;
  opened.spaces = std::move(store_spaces_);
  opened.found = found_.counts;
  opened.unplaced = unplaced_;
  return opened;
}

} // namespace terrace::actors
