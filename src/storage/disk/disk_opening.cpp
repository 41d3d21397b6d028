#include "storage/disk/disk_opening.hpp"

#include "base/printable.hpp"
#include "memory/striped_allocator.hpp"
#include "storage/file_lock.hpp"
#include "storage/volume_device.hpp"

#include <algorithm>
#include <cassert>
#include <thread>

namespace terrace {

namespace {

/// The largest extent that an entry of the table can have.
constexpr uint64_t physical_bytes_max = 32ULL << 30;

/// Makes one allocator, or, for several paths, one over the allocators of all of them, which avoids paths
/// that cannot be written.
result<std::unique_ptr<allocator>> space_of(const disk_paths& files, const tier_config& plan,
                                            std::shared_ptr<const disk_service> service) {
  std::vector<std::unique_ptr<allocator>> each;
  for (size_t i = 0; i < files.size(); ++i) {
    auto space = make_space(plan, files.file(i)->extents_bytes(), 0);
    if (!space)
      return tl::unexpected(space.error());
    each.push_back(std::move(*space));
  }
  if (each.size() == 1)
    return std::move(each.front());
  return std::make_unique<striped_allocator>(
      std::move(each), files.map(),
      [service = std::move(service)](size_t path) { return service->writes(path); });
}

std::string describe_left_out(const std::vector<left_out_path>& paths) {
  std::string text;
  for (const left_out_path& one : paths)
    text += (text.empty() ? "" : "; ") + one.why.text;
  return text.empty() ? text : text + "; out of service until the daemon is restarted and can open it";
}

recovered_volume found_in(const extent_file& file) {
  const superblock& block = file.block();
  if (!file.made_new()) {
    file_reader reader(file.fd());
    return recover(reader, block, file.extents_bytes());
  }
  recovered_volume nothing;
  nothing.position.next_generation = first_generation(block.epoch);
  return nothing;
}

/// The superblocks are durable once the volume is open. If a clear cannot be removed, it applies again at the
/// next start.
result<open_volume> open_cleared(extent_files_options options, const pending_clears& clears) {
  auto waiting = clears.of(options.paths);
  if (!waiting)
    return tl::unexpected(waiting.error());
  options.clears = std::move(*waiting);
  auto volume = extent_file::open_those_there(options);
  if (!volume || options.clears.empty())
    return volume;
  const extent_file& any = volume->files.front();
  for (const extent_file& file : volume->files) {
    auto was = file.made_new() ? pending_clears::outcome::made_new : pending_clears::outcome::kept;
    (void) clears.applied(file.path(), was, any.volume(), any.epoch());
  }
  for (const left_out_path& one : volume->left_out)
    (void) clears.applied(options.paths[one.path], pending_clears::outcome::left_out, any.volume(),
                          any.epoch());
  return volume;
}

} // namespace

result<unique_fd> watch_volume_lock(const std::vector<std::string>& files, const error& busy) {
  auto locked = std::find_if(files.begin(), files.end(),
                             [&](const std::string& file) { return busy.text.starts_with(file + ":"); });
  return watch_lock(locked != files.end() ? *locked : files.front());
}

result<disk_opening> disk_opening::open(const extent_files_options& options, const tier_config& plan,
                                        const pending_clears& clears) {
  auto volume = open_cleared(options, clears);
  if (!volume)
    return tl::unexpected(volume.error());
  disk_opening opening;
  opening.files_ = std::make_shared<const disk_paths>(std::move(volume->files));
  opening.left_out_ = std::move(volume->left_out);
  opening.service_ =
      std::make_shared<disk_service>(opening.files_->size(), describe_left_out(opening.left_out_));
  for (size_t i = 0; i < opening.files_->size(); ++i)
    if (const std::string& why = opening.files_->file(i)->readers_refusal(); !why.empty())
      opening.service_->set_notice(i, disk_service::about::readers, "GPUs do not read it themselves: " + why);
  auto space = space_of(*opening.files_, plan, opening.service_);
  if (!space)
    return tl::unexpected(space.error());
  opening.space_ = std::move(*space);
  opening.recover_paths();
  uint64_t next_generation = 0;
  for (path& one : opening.paths_) {
    next_generation = std::max(next_generation, one.found.position.next_generation);
    one.spaces = volume_spaces(one.found.next_space_number);
    opening.spaces_.insert(opening.spaces_.end(), one.found.spaces.begin(), one.found.spaces.end());
  }
  opening.objects_ = std::make_unique<residency>(tier_kind::disk, durable_index(next_generation));
  opening.objects_->expect(opening.objects());
  return opening;
}

void disk_opening::recover_paths() {
  paths_.resize(files_->size());
  auto work = [this](size_t i) { paths_[i].found = found_in(*files_->file(i)); };
  std::vector<std::thread> others;
  for (size_t i = 1; i < paths_.size(); ++i)
    others.emplace_back(work, i);
  work(0);
  for (std::thread& one : others)
    one.join();
}

size_t disk_opening::objects() const {
  size_t all = 0;
  for (const path& one : paths_)
    all += one.found.objects.size();
  return all;
}

void disk_opening::name_spaces(std::span<const space_id> ids) {
  assert(ids.size() == spaces_.size());
  auto next = ids.begin();
  for (path& one : paths_) {
    for (const recovered_space& space : one.found.spaces) {
      space_id id = *next++;
      if (id == space_id{}) {
        one.spaces.leave_out(space.number, space.fingerprint);
        continue;
      }
      one.ids.emplace_back(space.number, id);
      one.spaces.add(id, space.number, space.fingerprint);
    }
    std::sort(one.ids.begin(), one.ids.end());
  }
}

space_id disk_opening::path::named(uint32_t number) const {
  auto found_id = std::lower_bound(ids.begin(), ids.end(), std::pair(number, space_id{}));
  return found_id != ids.end() && found_id->first == number ? found_id->second : space_id{};
}

/// Returns the path whose next object is the oldest; null if there are no more.
disk_opening::path* disk_opening::oldest() {
  path* first = nullptr;
  auto generation = [](const path& one) { return one.found.objects[one.restored].generation; };
  for (path& one : paths_)
    if (!one.done() && (first == nullptr || generation(one) < generation(*first)))
      first = &one;
  return first;
}

bool disk_opening::restore(size_t objects) {
  std::vector<index_record> records;
  std::vector<space_id> spaces;
  while (records.size() < objects) {
    path* from = oldest();
    if (from == nullptr)
      break;
    from->found.objects.fetch(from->restored);
    index_record record = from->found.objects[from->restored++];
    record.offset += files_->map().begin(static_cast<size_t>(from - paths_.data()));
    space_id space = from->named(record.space);
    if (record.pool > UINT8_MAX || record.physical_bytes >= physical_bytes_max)
      space = {};
    unplaced_ += space == space_id{};
    spaces.push_back(space);
    records.push_back(record);
  }
  objects_->restore(records, spaces);
  return oldest() != nullptr;
}

void disk_opening::place() {
  // The journals hear of the removal of objects that are refused below.
  objects_->recount().tally_recorded(files_->map());
  std::vector<std::pair<extent, uint64_t>> taken; // the extent, and the bytes of the payload
  taken.reserve(objects_->table().size());
  objects_->table().for_each([&](const resident& object) {
    taken.push_back({{object.offset(), object.physical_bytes()}, object.payload_bytes()});
  });
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return a.first.offset < b.first.offset; });
  std::vector<extent> extents;
  std::vector<uint64_t> requested;
  extents.reserve(taken.size());
  requested.reserve(taken.size());
  for (const auto& [place, payload] : taken) {
    extents.push_back(place);
    requested.push_back(physical_bytes_for(payload));
  }
  for (const extent& e : extents)
    ++paths_[files_->map().path_of(e.offset)].placed;
  if (space_->adopt(extents, requested))
    return;
  std::vector<object_id> refused;
  std::vector<uint64_t> offsets;
  for (size_t i = 0; i < extents.size(); ++i)
    if (!space_->adopt({&extents[i], 1}, {&requested[i], 1})) {
      offsets.push_back(extents[i].offset);
      --paths_[files_->map().path_of(extents[i].offset)].placed;
    }
  const resident_table& table = objects_->table();
  for (uint32_t slot = 0; slot < table.slots(); ++slot)
    if (readable(table.at_slot(slot).state()) &&
        std::binary_search(offsets.begin(), offsets.end(), table.at_slot(slot).offset()))
      refused.push_back(table.id_at(slot));
  unplaced_ += refused.size();
  objects_->discard(refused);
}

opened_disk disk_opening::finish() {
  opened_disk opened;
  if (files_->size() != 1)
    objects_->index()->set_reach(
        [service = service_, map = files_->map()](uint64_t at) { return service->reads(map.path_of(at)); });
  for (path& one : paths_) {
    one.found.objects = {}; // for large volumes the objects take gigabytes
    opened.each.push_back({one.found.position, std::move(one.spaces), one.found.counts, one.placed});
  }
  opened.paths = std::move(files_);
  opened.left_out = std::move(left_out_);
  opened.service = std::move(service_);
  opened.objects = std::move(objects_);
  opened.space = std::move(space_);
  opened.unplaced = unplaced_;
  return opened;
}

namespace {

std::string names_of(const disk_paths& paths) {
  std::string names;
  for (size_t i = 0; i < paths.size(); ++i)
    names += (i == 0 ? "" : ", ") + paths.file(i)->path();
  return names;
}

} // namespace

std::string describe_opened(const opened_disk& disk) {
  const uint64_t found = disk.objects->table().published();
  std::string text = readable_bytes(disk.paths->bytes()) + " in " + names_of(*disk.paths) + ", " +
                     format_counted(found, "object") + " found in " +
                     std::to_string(static_cast<uint64_t>(disk.seconds * 1000)) + " ms";
  for (size_t i = 0; i < disk.paths->size(); ++i)
    if (const extent_file& file = *disk.paths->file(i); !file.direct())
      return text + ", through the page cache: " + file.buffered_reason();
  return text;
}

std::string describe_left_out(const opened_disk& disk) {
  if (disk.left_out.empty())
    return {};
  return "continues without " + std::to_string(disk.left_out.size()) + " of its " +
         std::to_string(disk.left_out.size() + disk.each.size()) + " paths: " + disk.service->reason();
}

std::string describe_losses(const opened_disk& disk) {
  uint64_t damaged = 0, outside = 0;
  for (const opened_path& path : disk.each) {
    damaged += damaged_in(path);
    outside += path.found.outside;
  }
  std::string text;
  if (damaged != 0)
    text = format_counted(damaged, "block") + " of its index " + (damaged == 1 ? "is" : "are") +
           " damaged or missing, and the objects recorded there are lost";
  if (disk.unplaced != 0)
    text += (text.empty() ? "" : "; ") + format_counted(disk.unplaced, "object") +
            (disk.unplaced == 1 ? " does not fit the present configuration and is lost"
                                : " do not fit the present configuration and are lost");
  if (outside != 0)
    text += (text.empty() ? "" : "; ") + format_counted(outside, "object") +
            (outside == 1 ? " was beyond its new end and is lost" : " were beyond its new end and are lost") +
            ", because disk.bytes is smaller than before: "
            "`terrace disk resize` "
            "before a start moves what has room";
  text = text.empty() ? text : names_of(*disk.paths) + ": " + text;
  for (size_t i = 0; i < disk.paths->size(); ++i)
    if (const extent_file& file = *disk.paths->file(i); !file.damaged_superblock().empty())
      text += (text.empty() ? "" : "; ") + file.path() +
              ": one copy of its superblock was damaged and has been rewritten (" +
              file.damaged_superblock() + ")";
  return text;
}

joining_lines describe_joining(const std::string& tier, const opened_disk& disk) {
  joining_lines lines;
  lines.joined = tier + " joined: " + describe_opened(disk);
  if (std::string left_out = describe_left_out(disk); !left_out.empty())
    lines.warnings.push_back(tier + " " + left_out);
  if (std::string lost = describe_losses(disk); !lost.empty())
    lines.warnings.push_back(std::move(lost));
  for (size_t i = 0; i < disk.paths->size(); ++i)
    if (const std::string& why = disk.paths->file(i)->readers_refusal(); !why.empty())
      lines.warnings.push_back("GPUs do not read " + tier + " themselves (gpu.direct_bytes): " + why);
  return lines;
}

void count_opened(const opened_disk& disk, std::span<const metrics::path_probes> probes,
                  metrics::tier_probe& tier) {
  assert(probes.size() == disk.paths->size() + disk.left_out.size());
  if (!disk.left_out.empty())
    tier.degraded(true);
  for (const left_out_path& one : disk.left_out)
    probes[one.path].disk->missing();
  for (size_t i = 0; i < disk.paths->size(); ++i) {
    const extent_file& file = *disk.paths->file(i);
    const metrics::path_probes& path = probes[file.path_index()];
    path.journal->recovered({disk.each[i].objects, damaged_in(disk.each[i]), disk.seconds});
    if (!file.damaged_superblock().empty())
      path.disk->damaged(metrics::disk_damage::superblock);
  }
}

} // namespace terrace
