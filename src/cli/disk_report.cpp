#include "cli/disk_report.hpp"

#include "base/unique_fd.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"
#include "storage/live_objects.hpp"
#include "storage/path_set.hpp"
#include "storage/superblock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace terrace::cli {

namespace {

constexpr size_t short_fingerprint = 8; ///< bytes of the fingerprint that are displayed

std::string hex(const std::array<uint8_t, 16>& bytes) { return to_hex(volume_id{bytes}); }

double portion(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

object_sum sum_of(const volume_inspection& is) {
  object_sum all;
  for (const index_record& object : is.found.objects)
    all.add(object);
  return all;
}

std::string describe_machine(const superblock& block, const std::array<uint8_t, 16>& machine) {
  if (block.owner.machine == decltype(block.owner.machine){})
    return "a machine without /etc/machine-id";
  if (block.owner.machine == machine)
    return "this machine";
  return "another machine, " + hex(block.owner.machine);
}

std::string describe_checkpoint(const inspected_checkpoint& checkpoint) {
  if (!checkpoint.problem.empty())
    return checkpoint.problem;
  if (!checkpoint.header)
    return "none yet";
  return fmt::format("number {}: {} in {}, covers the journal up to block {}", checkpoint.header->number,
                     format_counted(checkpoint.header->records, "record"),
                     format_counted(checkpoint.header->image_blocks, "block"),
                     checkpoint.header->journal_sequence);
}

std::string describe_superblocks(const volume_inspection& is) {
  std::string text;
  for (size_t copy = 0; copy < 2; ++copy)
    if (!is.superblock_problems[copy].empty())
      text += fmt::format("{}copy {}: {}", text.empty() ? "" : "; ", copy, is.superblock_problems[copy]);
  return text.empty() ? "both copies are valid" : text;
}

std::string describe_part(uint64_t begin, uint64_t bytes) {
  return fmt::format("{} at {}", readable_bytes(bytes), format_count(begin));
}

std::string format_layout(const volume_inspection& is) {
  const volume_layout& layout = is.block.layout;
  uint64_t live = is.journal_blocks_live();
  return format_facts({{"superblock", describe_superblocks(is)},
                       {"journal", fmt::format("{}; {} in use ({}), next is block {}",
                                               describe_part(layout.journal_begin, layout.journal_bytes),
                                               format_part(live, is.journal_blocks(), "block"),
                                               format_ratio(portion(live, is.journal_blocks())),
                                               is.found.position.next_sequence)},
                       {"checkpoint 0", describe_part(layout.checkpoint_area(0), layout.checkpoint_bytes) +
                                            "; " + describe_checkpoint(is.checkpoints[0])},
                       {"checkpoint 1", describe_part(layout.checkpoint_area(1), layout.checkpoint_bytes) +
                                            "; " + describe_checkpoint(is.checkpoints[1])},
                       {"objects", describe_part(layout.extents_begin, is.arena_bytes)}});
}

std::string format_problems(const volume_inspection& is) {
  const recovery_counts& counts = is.found.counts;
  std::string text;
  auto add = [&](uint64_t count, const char* noun, const char* state) {
    if (count != 0)
      text += fmt::format("  {} {}\n", format_counted(count, noun), state);
  };
  if (is.file_bytes < is.block.capacity_bytes)
    text += fmt::format("  the file has {} where {} were expected; `terrace disk resize` repairs it\n",
                        readable_bytes(is.file_bytes), readable_bytes(is.block.capacity_bytes));
  add(counts.damaged_blocks, "block", "of the index torn, corrupted or unreadable");
  add(counts.missing_blocks, "block", "of the index missing");
  add(counts.damaged_records, "record", "of the index inconsistent");
  add(counts.forgotten, "object", "cleared");
  add(counts.outside, "object", "beyond the end of the file");
  add(counts.overlapping, "object", "overwritten by newer ones");
  add(counts.unknown_space, "object", "of an unknown space");
  add(is.superseded, "object", "also there in a newer version");
  return text.empty() ? text : "\n" + text;
}

void add_sum(json& to, const object_sum& sum) {
  to["objects"] = sum.objects;
  to["payload_bytes"] = sum.payload_bytes;
  to["physical_bytes"] = sum.physical_bytes;
}

json checkpoint_json(const inspected_checkpoint& checkpoint) {
  json value = {{"problem", checkpoint.problem}};
  if (checkpoint.header) {
    value["number"] = checkpoint.header->number;
    value["records"] = checkpoint.header->records;
    value["image_blocks"] = checkpoint.header->image_blocks;
    value["journal_sequence"] = checkpoint.header->journal_sequence;
  }
  return value;
}

} // namespace

std::string format_inspection(const std::string& path, const volume_inspection& is,
                              const std::array<uint8_t, 16>& machine) {
  const superblock& block = is.block;
  object_sum all = sum_of(is);
  std::string text = format_facts(
      {{"volume", to_hex(block.volume)},
       {"file", fmt::format("{}, {}", path, readable_bytes(is.file_bytes))},
       {"path", fmt::format("{} of {}", block.path_index, block.path_count)},
       {"owner", fmt::format("group {} of {}", block.owner.group.empty() ? "-" : block.owner.group,
                             describe_machine(block, machine))},
       {"last opened", "by boot " + hex(block.boot.bytes)},
       {"epoch", fmt::format("{}; objects before epoch {} are forgotten, later ones in {}", block.epoch,
                             block.forgotten_below, format_counted(block.floors.size(), "space"))},
       {"live objects",
        fmt::format("{}, {}; {} with headers and padding, {} of the arena", format_count(all.objects),
                    readable_bytes(all.payload_bytes), readable_bytes(all.physical_bytes),
                    format_ratio(portion(all.physical_bytes, is.arena_bytes)))}});
  text += "\n" + format_layout(is);
  table spaces({{"space", align::left}, {"number"}, {"objects"}, {"bytes"}, {"on disk"}});
  for (const space_sum& sum : sum_by_space(is.found))
    spaces.add({to_hex(digest{sum.space.fingerprint}, short_fingerprint), std::to_string(sum.space.number),
                format_count(sum.sum.objects), readable_bytes(sum.sum.payload_bytes),
                readable_bytes(sum.sum.physical_bytes)});
  table sizes({{"objects up to"}, {"objects"}, {"bytes"}, {"on disk"}});
  for (const size_sum& sum : sum_by_size(is.found))
    sizes.add({readable_bytes(sum.payload_bytes_max), format_count(sum.sum.objects),
               readable_bytes(sum.sum.payload_bytes), readable_bytes(sum.sum.physical_bytes)});
  if (!spaces.empty())
    text += "\n" + spaces.to_string() + "\n" + sizes.to_string();
  return text + format_problems(is);
}

json to_json(const std::string& path, const volume_inspection& is) {
  const superblock& block = is.block;
  const volume_layout& layout = block.layout;
  const recovery_counts& counts = is.found.counts;
  json spaces = json::array(), sizes = json::array(), checkpoints = json::array();
  for (const space_sum& sum : sum_by_space(is.found)) {
    spaces.push_back({{"fingerprint", to_hex(digest{sum.space.fingerprint})}, {"number", sum.space.number}});
    add_sum(spaces.back(), sum.sum);
  }
  for (const size_sum& sum : sum_by_size(is.found)) {
    sizes.push_back({{"payload_bytes_max", sum.payload_bytes_max}});
    add_sum(sizes.back(), sum.sum);
  }
  for (const inspected_checkpoint& checkpoint : is.checkpoints)
    checkpoints.push_back(checkpoint_json(checkpoint));
  json value = {{"path", path},
                {"volume", to_hex(block.volume)},
                {"path_index", block.path_index},
                {"path_count", block.path_count},
                {"file_bytes", is.file_bytes},
                {"capacity_bytes", block.capacity_bytes},
                {"arena_bytes", is.arena_bytes},
                {"group", block.owner.group},
                {"machine", hex(block.owner.machine)},
                {"boot", hex(block.boot.bytes)},
                {"epoch", block.epoch},
                {"forgotten_below", block.forgotten_below},
                {"forgotten_spaces", block.floors.size()},
                {"superblock_problems", is.superblock_problems},
                {"layout",
                 {{"journal_begin", layout.journal_begin},
                  {"journal_bytes", layout.journal_bytes},
                  {"checkpoint_begin", layout.checkpoint_begin},
                  {"checkpoint_bytes", layout.checkpoint_bytes},
                  {"extents_begin", layout.extents_begin}}},
                {"journal",
                 {{"blocks", is.journal_blocks()},
                  {"live_blocks", is.journal_blocks_live()},
                  {"live_from", is.found.position.live_from},
                  {"next_sequence", is.found.position.next_sequence}}},
                {"checkpoints", checkpoints}};
  add_sum(value, sum_of(is));
  value["spaces"] = spaces;
  value["sizes"] = sizes;
  value["index"] = {{"damaged_blocks", counts.damaged_blocks},
                    {"missing_blocks", counts.missing_blocks},
                    {"damaged_records", counts.damaged_records},
                    {"forgotten", counts.forgotten},
                    {"outside", counts.outside},
                    {"overlapping", counts.overlapping},
                    {"unknown_space", counts.unknown_space},
                    {"superseded", is.superseded}};
  value["problems"] = is.problems();
  return value;
}

namespace {

/// Whether anything but zeroes follows the superblocks. What was only allocated has no data, and is not read.
bool has_data_behind_superblocks(const std::string& path) {
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<char> part(1 << 20);
  for (off_t at = 2 * static_cast<off_t>(superblock_bytes);;) {
    at = ::lseek(file.get(), at, SEEK_DATA);
    const ssize_t got = at < 0 ? 0 : ::pread(file.get(), part.data(), part.size(), at);
    if (got <= 0)
      return false;
    if (std::any_of(part.begin(), part.begin() + got, [](char byte) { return byte != 0; }))
      return true;
    at += got;
  }
}

} // namespace

outcome<inspected_volume> open_and_inspect(const std::string& path) {
  auto volume = offline_volume::open(path, volume_access::read);
  if (!volume)
    return disk_failure(path, volume.error());
  auto is = inspect(volume->device());
  if (!is && is.error().code == errc::internal) // the file is a volume that cannot be read
    return tl::unexpected(failure{exit_code::damaged, path + ": " + is.error().text});
  if (!is && is.error().code == errc::not_found && has_data_behind_superblocks(path))
    return tl::unexpected(failure{
        exit_code::damaged, path + ": both copies of its superblock are zeroes, and what follows is not: "
                                   "if this was a volume, nothing of it can be found"});
  if (!is)
    return disk_failure(path, is.error());
  return inspected_volume{std::move(*volume), std::move(*is)};
}

std::string describe_mismatch(const std::vector<std::string>& paths,
                              const std::vector<inspected_volume>& volumes) {
  bool several = std::any_of(volumes.begin(), volumes.end(),
                             [](const inspected_volume& volume) { return volume.is.block.path_count != 1; });
  if (!several)
    return {};
  std::vector<found_path> found;
  for (const inspected_volume& volume : volumes)
    found.push_back({found_path::kind::volume, volume.is.block, {}});
  auto set = plan_paths(paths, found, mismatch_rule::refuse);
  return set ? std::string() : set.error().text;
}

void print_json_of_paths(console& to, std::vector<json> values) {
  if (values.size() == 1)
    print_json(to, values.front());
  else
    print_json(to, {{"paths", std::move(values)}});
}

tl::unexpected<failure> disk_failure(const std::string& path, const error& e) {
  std::string text = e.text.starts_with(path) ? e.text : path + ": " + e.text;
  switch (e.code) {
    case errc::not_found:
    case errc::denied:
    case errc::unsupported:
    case errc::bad_request: return bad_usage(text);
    default: return failed(text);
  }
}

} // namespace terrace::cli
