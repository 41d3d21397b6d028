// terrace events

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/daemon_connection.hpp"
#include "cli/digest_text.hpp"
#include "cli/json.hpp"
#include "cli/kv_event_batch.hpp"

#include <CLI/CLI.hpp>

#include <chrono>

namespace terrace::cli {

namespace {

/// Interval of checks for Ctrl-C, and whether somebody still reads, while nothing happens.
constexpr auto look_up_every = std::chrono::milliseconds(500);

constexpr const char* event_name(client::event_kind kind) {
  switch (kind) {
    case client::event_kind::admit: return "admit";
    case client::event_kind::evict: return "evict";
    case client::event_kind::demote: return "demote";
    case client::event_kind::clear: return "clear";
  }
  return "unknown";
}

class events_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_flag("--follow", follow_, "Go on with what happens from now on, until Ctrl-C");
    app.add_option(
        "--zmq-pub", publisher_.publish,
        "Publish in vLLM's form at this endpoint of ZeroMQ, such as tcp://127.0.0.1:5557, until Ctrl-C");
    app.add_option("--zmq-replay", publisher_.replay,
                   "Answer at this endpoint who asks for earlier messages");
    app.add_option("--zmq-topic", publisher_.topic, "Topic of the messages");
    app.add_option("--zmq-form", form_,
                   "How events are written: map, or array as by earlier versions of vLLM")
        ->check(CLI::IsMember({"map", "array"}))
        ->capture_default_str();
    app.add_flag("--zmq-remote", tells_remote_,
                 "With --zmq-pub: tell of the remote tier as well, with the locality REMOTE");
    app.add_option("--block-size", batches_.block_size, "Tokens per chunk, told to subscribers of --zmq-pub")
        ->capture_default_str();
    app.add_flag("--integer-hashes", batches_.integer_hashes,
                 "With --zmq-pub: the last 64 bits of a digest instead of its bytes");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto daemon = connect(daemon_, "terrace events", true);
    if (!daemon)
      return tl::unexpected(daemon.error());
    if (publisher_.publish.empty() && !publisher_.replay.empty())
      return bad_usage("--zmq-replay needs --zmq-pub, whose messages it repeats");
    if (tells_remote_ && publisher_.publish.empty())
      return bad_usage("--zmq-remote needs --zmq-pub, whose messages it is about");
    if (tells_remote_ && form_ == "array")
      return bad_usage("--zmq-remote needs --zmq-form map: arrays do not say which blocks are remote");
    blocks_ = kv_blocks(tells_remote_);
    std::unique_ptr<kv_event_publisher> publisher;
    if (!publisher_.publish.empty()) {
      auto opened = kv_event_publisher::open(publisher_);
      if (!opened)
        return tl::unexpected(opened.error());
      publisher = std::move(*opened);
      batches_.form = form_ == "array" ? kv_event_form::array : kv_event_form::map;
    }
    interruption ended;
    client::event_cursor from;
    while (!ended.requested()) {
      to.expect_reader();
      bool waits = from.sequence != 0 && from.tier == client::event_cursor{}.tier;
      auto until = waits ? client::within(look_up_every) : daemon_.until();
      auto part = daemon->admin().subscribe(from, events_at_a_time, until);
      if (!part && part.error().code == errc::deadline && waits)
        continue;
      // The publisher begins anew, and its message says so.
      if (!part && part.error().code == errc::gone && publisher) {
        from = {};
        continue;
      }
      if (!part)
        return request_failed(*daemon, "reading events", part.error());
      if (publisher)
        publish(*publisher, *part, from.sequence == 0);
      else
        show(to, *part, from.sequence == 0);
      bool complete = part->snapshot && part->next.tier == client::event_cursor{}.tier;
      if (complete && !follow_ && !publisher)
        return exit_code::ok;
      from = part->next;
    }
    return exit_code::ok;
  }

 private:
  static constexpr uint32_t events_at_a_time = 4'096;

  static void print(console& to, const json& line) { to.print("{}\n", line.dump()); }

  void publish(kv_event_publisher& to, const client::event_part& part, bool first) {
    if (first)
      blocks_.clear();
    std::vector<block_change> changes;
    for (const client::event& one : part.events)
      blocks_.add(one, changes);
    std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    if (auto batch = encode_kv_events(changes, first, now.count(), batches_); !batch.empty())
      to.publish(std::move(batch));
  }

  void show(console& to, const client::event_part& part, bool first) const {
    if (first && daemon_.json)
      print(to, json{{"event", "snapshot"}, {"sequence", part.next.sequence}});
    for (const client::event& one : part.events)
      show(to, one, part.snapshot);
    if (part.snapshot && part.next.tier == client::event_cursor{}.tier && daemon_.json)
      print(to, json{{"event", "follow"}, {"sequence", part.next.sequence}});
    to.flush();
  }

  void show(console& to, const client::event& one, bool snapshot) const {
    const char* text = snapshot ? "present" : event_name(one.what);
    if (daemon_.json)
      print(to, json{{"event", text},
                     {"sequence", one.sequence},
                     {"tier", to_string(one.tier)},
                     {"space", one.space},
                     {"pool", one.pool},
                     {"rank", one.rank},
                     {"chunk", digest_text(one.chunk)},
                     {"chunk_objects", one.chunk_objects}});
    else
      to.print("{:>10} {:<7} {:<4} space {} pool {} rank {} {}\n", one.sequence, text, to_string(one.tier),
               one.space, one.pool, one.rank, digest_text(one.chunk));
  }

  publisher_options publisher_;
  kv_event_options batches_;
  kv_blocks blocks_; ///< blocks that were published
  std::string form_ = "map";
  bool follow_ = false, tells_remote_ = false;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_events_command() { return std::make_unique<events_command>(); }

} // namespace terrace::cli
