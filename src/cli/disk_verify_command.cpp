// terrace disk verify
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/digest_text.hpp"
#include "cli/disk_report.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"
#include "storage/file_lock.hpp"
#include "storage/object_check.hpp"
#include "storage/offline_volume.hpp"
#include "storage/superblock.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace terrace::cli {

namespace {

// Reads every live object of a volume and compares it with the index.

struct scrub_finding {
  index_record object;
  checked_object found;
};

struct scrub_result {
  std::array<uint64_t, 4> objects{}; ///< by stored_state
  uint64_t bytes_read = 0;
  double seconds = 0;
  std::vector<scrub_finding> findings; ///< all objects that are not intact, by offset
  bool interrupted = false;

  uint64_t of(stored_state state) const { return objects[static_cast<size_t>(state)]; }
  uint64_t checked() const { return objects[0] + objects[1] + objects[2] + objects[3]; }
  uint64_t bad() const { return of(stored_state::damaged) + of(stored_state::unreadable); }
};

const char* name_of(stored_state state) {
  switch (state) {
    case stored_state::intact: return "intact";
    case stored_state::superseded: return "superseded";
    case stored_state::damaged: return "damaged";
    case stored_state::unreadable: return "unreadable";
  }
  return "";
}

uint64_t file_offset(const volume_inspection& is, const index_record& object) {
  return is.block.layout.extents_begin + object.offset;
}

size_t listed(const scrub_result& scrubbed, size_t list) {
  return list == 0 ? scrubbed.findings.size() : std::min(list, scrubbed.findings.size());
}

double seconds_from(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// State shared by the threads.
class scrub_run {
 public:
  scrub_run(volume_reader& from, const volume_inspection& is, const interruption& stop, console& to)
      : from_(from), is_(is), stop_(stop), bar_(to, "verifying objects", is.found.objects.size()) {
    for (const recovered_space& space : is.found.spaces)
      spaces_[space.number] = space.fingerprint;
    for (const index_record& object : is.found.objects)
      order_.push_back(&object);
    std::sort(order_.begin(), order_.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  }

  /// Runs on each thread.
  void work() {
    object_checker checker(from_, is_.block);
    for (size_t i; !stop_.requested() && (i = next_++) < order_.size();) {
      const index_record& object = *order_[i];
      note(object, checker.check(object, spaces_.at(object.space)));
    }
  }

  scrub_result result() {
    bar_.finish();
    done_.seconds = seconds_from(begin_);
    done_.interrupted = done_.checked() < order_.size();
    std::sort(done_.findings.begin(), done_.findings.end(),
              [](const auto& a, const auto& b) { return a.object.offset < b.object.offset; });
    return std::move(done_);
  }

 private:
  void note(const index_record& object, checked_object found) {
    std::lock_guard lock(mutex_);
    ++done_.objects[static_cast<size_t>(found.state)];
    done_.bytes_read += found.bytes_read;
    if (found.state != stored_state::intact)
      done_.findings.push_back({object, std::move(found)});
    bar_.advance(1, fmt::format("{}, {} damaged",
                                format_rate(static_cast<double>(done_.bytes_read) / seconds_from(begin_)),
                                format_count(done_.bad())));
  }

  volume_reader& from_;
  const volume_inspection& is_;
  const interruption& stop_;
  progress bar_;
  std::map<uint32_t, space_fingerprint> spaces_;
  std::vector<const index_record*> order_;
  std::atomic<size_t> next_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  scrub_result done_;
};

/// Reads objects in order of their offsets, on `jobs` threads with one read of some MiB each.
scrub_result scrub(volume_reader& from, const volume_inspection& is, size_t jobs, const interruption& stop,
                   console& to) {
  scrub_run run(from, is, stop, to);
  std::vector<std::thread> threads;
  for (size_t job = 1; job < jobs; ++job)
    threads.emplace_back([&run] { run.work(); });
  run.work();
  for (std::thread& thread : threads)
    thread.join();
  return run.result();
}

/// `list`: the number of findings to show, 0 for all.
std::string format_scrub(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed,
                         size_t list) {
  double rate = scrubbed.seconds > 0 ? static_cast<double>(scrubbed.bytes_read) / scrubbed.seconds : 0;
  auto count = [&](stored_state state) { return format_count(scrubbed.of(state)); };
  std::string text = format_facts(
      {{"volume", path},
       {scrubbed.interrupted ? "interrupted" : "verified",
        fmt::format("{}, {} in {}, {}", format_part(scrubbed.checked(), is.found.objects.size(), "object"),
                    readable_bytes(scrubbed.bytes_read), format_duration(scrubbed.seconds * 1e9),
                    format_rate(rate))},
       {"intact", count(stored_state::intact)},
       {"superseded", count(stored_state::superseded) + " whose extents were reused: misses, not damage"},
       {"damaged", count(stored_state::damaged)},
       {"unreadable", count(stored_state::unreadable)},
       {"metadata", is.problems() == 0
                        ? "sound"
                        : format_counted(is.problems(), "problem") + " (see terrace disk inspect)"}});
  table rows({{"state", align::left},
              {"space", align::left},
              {"pool"},
              {"rank"},
              {"chunk", align::left},
              {"file offset"},
              {"bytes"},
              {"why", align::left}});
  std::map<uint32_t, std::string> spaces;
  for (const recovered_space& space : is.found.spaces)
    spaces[space.number] = to_hex(digest{space.fingerprint}, 8);
  size_t shown = listed(scrubbed, list);
  for (size_t i = 0; i < shown; ++i) {
    const auto& [object, found] = scrubbed.findings[i];
    rows.add({name_of(found.state), spaces[object.space], std::to_string(object.pool),
              std::to_string(object.rank), digest_text(object.chunk), std::to_string(file_offset(is, object)),
              std::to_string(object.payload_bytes), found.why});
  }
  if (!rows.empty())
    text += "\n" + rows.to_string();
  if (shown < scrubbed.findings.size())
    text +=
        fmt::format("  and {} more (--list 0 lists all)\n", format_count(scrubbed.findings.size() - shown));
  return text;
}

json scrub_json(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed,
                size_t list) {
  std::map<uint32_t, std::string> spaces;
  for (const recovered_space& space : is.found.spaces)
    spaces[space.number] = to_hex(digest{space.fingerprint});
  json findings = json::array();
  for (size_t i = 0; i < listed(scrubbed, list); ++i) {
    const auto& [object, found] = scrubbed.findings[i];
    findings.push_back({{"state", name_of(found.state)},
                        {"space", spaces[object.space]},
                        {"pool", object.pool},
                        {"rank", object.rank},
                        {"chunk", digest_text(object.chunk)},
                        {"generation", object.generation},
                        {"file_offset", file_offset(is, object)},
                        {"payload_bytes", object.payload_bytes},
                        {"why", found.why}});
  }
  return {{"path", path},
          {"objects", is.found.objects.size()},
          {"checked", scrubbed.checked()},
          {"intact", scrubbed.of(stored_state::intact)},
          {"superseded", scrubbed.of(stored_state::superseded)},
          {"damaged", scrubbed.of(stored_state::damaged)},
          {"unreadable", scrubbed.of(stored_state::unreadable)},
          {"metadata_problems", is.problems()},
          {"interrupted", scrubbed.interrupted},
          {"bytes_read", scrubbed.bytes_read},
          {"seconds", scrubbed.seconds},
          {"findings", findings}};
}

class disk_verify_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of several paths")
        ->required();
    app.add_option("--jobs", jobs_, "Number of objects read in parallel")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--list", list_, "List at most this many damaged objects; 0: all")->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    interruption stop;
    std::vector<json> values;
    exit_code code = exit_code::ok;
    for (const std::string& path : paths_) {
      auto opened = open_and_inspect(path);
      if (!opened)
        return tl::unexpected(opened.error());
      scrub_result scrubbed = scrub(opened->volume.device(), opened->is, jobs_, stop, to);
      if (json_)
        values.push_back(scrub_json(path, opened->is, scrubbed, list_));
      else
        to.print("{}", format_scrub(path, opened->is, scrubbed, list_));
      if (scrubbed.bad() != 0 || opened->is.problems() != 0)
        code = exit_code::damaged;
      else if (scrubbed.interrupted && code == exit_code::ok)
        code = exit_code::failed;
    }
    if (json_)
      print_json_of_paths(to, std::move(values));
    return code;
  }

 private:
  std::vector<std::string> paths_;
  size_t jobs_ = 4;
  size_t list_ = 100;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_verify_command() { return std::make_unique<disk_verify_command>(); }

// terrace disk inspect

namespace {

class disk_inspect_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of all its paths, in order")
        ->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    std::vector<inspected_volume> volumes;
    for (const std::string& path : paths_) {
      auto opened = open_and_inspect(path);
      if (!opened)
        return tl::unexpected(opened.error());
      volumes.push_back(std::move(*opened));
    }
    std::vector<json> values;
    for (size_t i = 0; i < volumes.size(); ++i)
      if (json_)
        values.push_back(to_json(paths_[i], volumes[i].is));
      else
        to.print("{}{}", i == 0 ? "" : "\n", format_inspection(paths_[i], volumes[i].is, machine_identity()));
    if (json_)
      print_json_of_paths(to, std::move(values));
    else if (std::string wrong = describe_mismatch(paths_, volumes); volumes.size() > 1 && !wrong.empty())
      to.print("\n  these files are not one volume: {}\n", wrong);
    return exit_code::ok;
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_inspect_command() { return std::make_unique<disk_inspect_command>(); }

// terrace disk wipe

namespace {

class disk_wipe_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of several paths")
        ->required();
    app.add_flag("--yes", yes_, "Do not ask for confirmation");
    app.add_flag("--force", force_, "Also wipe a file that is not a Terrace volume");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    std::vector<json> values;
    for (const std::string& path : paths_) {
      auto wiped = wipe(to, path);
      if (!wiped)
        return tl::unexpected(wiped.error());
      if (json_)
        values.push_back({{"path", path}, {"wiped", *wiped}});
      else
        to.print("{}: {}; the next daemon starts with an empty volume\n", path,
                 *wiped ? "wiped" : "it contained no volume");
    }
    if (json_)
      print_json_of_paths(to, std::move(values));
    return exit_code::ok;
  }

 private:
  /// Returns true if there was a volume.
  outcome<bool> wipe(console& to, const std::string& path) {
    auto volume = offline_volume::open(path, volume_access::write);
    if (!volume)
      return disk_failure(path, volume.error());
    auto size = volume->device().size();
    auto copies = read_superblocks(volume->device());
    if (!size || !copies)
      return disk_failure(path, size ? copies.error() : size.error());
    const auto& block = copies->newest;
    if (!block && block.error().code == errc::not_found)
      return false;
    if (!block && block.error().code == errc::denied && !force_)
      return bad_usage(path + ": not a Terrace volume; nothing was changed. Use --force to wipe it anyway");
    if (auto sure = confirm(to, describe(path, *size, block), yes_); !sure)
      return tl::unexpected(sure.error());
    if (auto done = erase_superblocks(volume->device(), block ? block->sequence : 1); !done)
      return disk_failure(path, done.error());
    return true;
  }

  static std::string describe(const std::string& path, uint64_t bytes, const result<superblock>& block) {
    std::string text =
        block ? fmt::format("path {} of {} of volume {} of group {}", block->path_index, block->path_count,
                            to_hex(block->volume), block->owner.group.empty() ? "-" : block->owner.group)
              : block.error().text;
    return fmt::format("{} ({}: {}) will be wiped", path, readable_bytes(bytes), text);
  }

  std::vector<std::string> paths_;
  bool yes_ = false;
  bool force_ = false;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_wipe_command() { return std::make_unique<disk_wipe_command>(); }

} // namespace terrace::cli
