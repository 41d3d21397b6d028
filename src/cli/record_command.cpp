// terrace record
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/json.hpp"
#include "cli/lookup_recorder.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

namespace terrace::cli {

namespace {

/// Interval of checks for Ctrl-C while nobody looks anything up.
constexpr auto look_up_every = std::chrono::milliseconds(500);

class record_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("-o,--output", output_, "File to write; default: standard output");
    app.add_option("--space", space_,
                   "Number of the space, as terrace status shows it; default: that of the first lookup");
    app.add_option("--requests", requests_max_, "Ends after so many lookups")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--chunks", chunks_max_,
                   "Ends when so many different chunks were seen; each takes about 100 bytes of memory")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--kept", kept_, "Begin with the lookups that the daemon still has, the last 1,024 at most");
    app.add_flag("--no-wait", no_wait_, "End when no further lookup is there");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace record", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    const bool to_file = !output_.empty() && output_ != "-";
    std::ofstream file;
    if (to_file) {
      file.open(output_, std::ios::binary | std::ios::trunc);
      if (!file)
        return failed(output_ + ": cannot be written: " + std::strerror(errno));
    }
    lookup_recorder recorder(space_, chunks_max_);
    auto write = [&](const trace_request& request) {
      if (to_file)
        file << format_trace_line(request) << std::flush;
      else
        to.write(format_trace_line(request));
      return to_file ? file.good() : true;
    };
    auto ended = follow(*daemon, recorder, write, to);
    if (!ended)
      return tl::unexpected(ended.error());
    return report(recorder, to_file, to);
  }

 private:
  template <class Write>
  outcome<void> follow(client::connection& daemon, lookup_recorder& recorder, const Write& write,
                       console& to) {
    uint64_t after = 0;
    if (!kept_) {
      auto now = daemon.admin().recent(UINT64_MAX, false, daemon_.until());
      if (!now)
        return request_failed(daemon, "asking for the last lookup", now.error());
      after = now->last;
    }
    interruption stopped;
    while (!stopped.requested() && written_ < requests_max_ && !recorder.full()) {
      if (output_.empty() || output_ == "-")
        to.expect_reader();
      auto until = no_wait_ ? daemon_.until() : client::within(look_up_every);
      auto part = daemon.admin().recent(after, !no_wait_, until);
      if (!part && part.error().code == errc::deadline && !no_wait_)
        continue;
      if (!part)
        return request_failed(daemon, "reading lookups", part.error());
      if (part->lookups.empty())
        break;
      lost_ += kept_ && after == 0 ? 0 : part->lost;
      after = part->lookups.back().number;
      uint64_t now_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                  std::chrono::steady_clock::now().time_since_epoch())
                                                  .count());
      for (const auto& one : part->lookups) {
        auto made = written_ < requests_max_ ? recorder.add(one, now_ms) : std::nullopt;
        if (!made)
          continue;
        if (!write(*made))
          return failed(output_ + ": cannot be written: " + std::strerror(errno));
        ++written_;
      }
      to.flush();
    }
    return {};
  }

  outcome<exit_code> report(const lookup_recorder& recorder, bool to_file, console& to) {
    if (!to_file)
      return exit_code::ok;
    if (daemon_.json) {
      print_json(to, {{"file", output_},
                      {"requests", written_},
                      {"space", recorder.space()},
                      {"block_tokens", recorder.chunk_tokens()},
                      {"lost", lost_},
                      {"other_spaces", recorder.other_spaces()},
                      {"unknown_begins", recorder.unknown_begins()}});
      return exit_code::ok;
    }
    to.print("{} written to {}", format_counted(written_, "request"), output_);
    if (written_ != 0)
      to.print(" (space {}; read it with --block-tokens {} --chunk-tokens {})", recorder.space(),
               recorder.chunk_tokens(), recorder.chunk_tokens());
    to.print("\n");
    if (lost_ != 0)
      to.print("left out: {} that came faster than they could be read\n", format_counted(lost_, "lookup"));
    if (recorder.other_spaces() != 0)
      to.print("left out: {} of other spaces (--space chooses one)\n",
               format_counted(recorder.other_spaces(), "lookup"));
    if (recorder.unknown_begins() != 0)
      to.print("left out: {} of which only a later part was sent\n",
               format_counted(recorder.unknown_begins(), "lookup"));
    if (recorder.full())
      to.print("ended: there are more than {} different chunks (--chunks)\n", format_count(chunks_max_));
    return exit_code::ok;
  }

  std::string output_;
  uint32_t space_ = 0;
  uint64_t requests_max_ = 100'000;
  size_t chunks_max_ = 1'000'000;
  bool kept_ = false;
  bool no_wait_ = false;
  daemon_options daemon_;
  uint64_t written_ = 0, lost_ = 0;
};

} // namespace

std::unique_ptr<command> make_record_command() { return std::make_unique<record_command>(); }

} // namespace terrace::cli
