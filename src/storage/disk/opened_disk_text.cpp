#include "storage/disk/opened_disk_text.hpp"

#include <cassert>

namespace terrace {

namespace {

std::string names_of(const disk_paths& paths) {
  std::string names;
  for (size_t i = 0; i < paths.size(); ++i)
    names += (i == 0 ? "" : ", ") + paths.file(i)->path();
  return names;
}

} // namespace

std::string describe_opened(const opened_disk& disk) {
  std::string text = std::to_string(disk.paths->bytes()) + " bytes in " + names_of(*disk.paths) + ", " +
                     std::to_string(disk.objects->table().published()) + " objects found in " +
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
  uint64_t damaged = 0;
  for (const opened_path& path : disk.each)
    damaged += damaged_in(path);
  std::string text;
  if (damaged != 0)
    text = std::to_string(damaged) +
           " blocks of its index are damaged or missing, and the objects recorded there are lost";
  if (disk.unplaced != 0)
    text += (text.empty() ? "" : "; ") + std::to_string(disk.unplaced) +
            " objects do not fit the present configuration and are lost";
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
