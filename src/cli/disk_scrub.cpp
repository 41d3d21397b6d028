#include "cli/disk_scrub.hpp"

#include "cli/console.hpp"
#include "cli/digest_text.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace terrace::cli {

namespace {

const char* name_of(object_state state) {
  switch (state) {
    case object_state::intact: return "intact";
    case object_state::superseded: return "superseded";
    case object_state::damaged: return "damaged";
    case object_state::unreadable: return "unreadable";
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
    if (found.state != object_state::intact)
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

} // namespace

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

std::string format_scrub(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed,
                         size_t list) {
  double rate = scrubbed.seconds > 0 ? static_cast<double>(scrubbed.bytes_read) / scrubbed.seconds : 0;
  auto count = [&](object_state state) { return format_count(scrubbed.of(state)); };
  std::string text = format_facts(
      {{"volume", path},
       {scrubbed.interrupted ? "interrupted" : "verified",
        fmt::format("{} of {} objects, {} in {}, {}", format_count(scrubbed.checked()),
                    format_count(is.found.objects.size()), format_bytes(scrubbed.bytes_read),
                    format_duration(scrubbed.seconds * 1e9), format_rate(rate))},
       {"intact", count(object_state::intact)},
       {"superseded", count(object_state::superseded) + " whose extents were reused: misses, not damage"},
       {"damaged", count(object_state::damaged)},
       {"unreadable", count(object_state::unreadable)},
       {"metadata", is.problems() == 0
                        ? "sound"
                        : format_count(is.problems()) + " problems (see terrace disk inspect)"}});
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

json to_json(const std::string& path, const volume_inspection& is, const scrub_result& scrubbed,
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
          {"intact", scrubbed.of(object_state::intact)},
          {"superseded", scrubbed.of(object_state::superseded)},
          {"damaged", scrubbed.of(object_state::damaged)},
          {"unreadable", scrubbed.of(object_state::unreadable)},
          {"metadata_problems", is.problems()},
          {"interrupted", scrubbed.interrupted},
          {"bytes_read", scrubbed.bytes_read},
          {"seconds", scrubbed.seconds},
          {"findings", findings}};
}

} // namespace terrace::cli
