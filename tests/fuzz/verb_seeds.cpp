#include "tests/fuzz/verb_seeds.hpp"

#include "tests/fuzz/sample_frames.hpp"
#include "tests/fuzz/verb_session.hpp"

#include <initializer_list>

namespace terrace::fuzz {

using protocol::kind;

namespace {

/// Writes an input. Each step ends with `how`: 0 sends all and lets the daemon settle.
struct writer {
  std::vector<uint8_t> bytes;

  explicit writer(uint8_t options = 0) : bytes{options} {}

  writer& add(uint8_t what, uint8_t who, std::initializer_list<uint8_t> with, uint8_t how = 0) {
    bytes.push_back(what);
    bytes.push_back(who);
    bytes.insert(bytes.end(), with);
    bytes.push_back(how);
    return *this;
  }
  writer& add(step what, uint8_t who, std::initializer_list<uint8_t> with = {}, uint8_t how = 0) {
    return add(static_cast<uint8_t>(what), who, with, how);
  }
  writer& add(kind verb, uint8_t who, std::initializer_list<uint8_t> with = {}, uint8_t how = 0) {
    return add(step_of(verb), who, with, how);
  }
  /// Connected, with a space and a region.
  writer& ready(uint8_t who, uint8_t region = 1) {
    return add(step::greet, who, {0})
        .add(kind::open_space, who, {0})
        .add(kind::register_region, who, {region});
  }
  /// Four chunks from `first` on.
  writer& store(uint8_t who, uint8_t first, uint8_t how = 0) {
    return add(kind::store, who, {0, chunks(first), 0, 0, 0, 0, 0}, how);
  }
  writer& lookup(uint8_t who, uint8_t first, bool lease, uint8_t how = 0) {
    return add(kind::lookup, who, {0, chunks(first), 0, static_cast<uint8_t>(lease ? 1 : 0), 0, 0}, how);
  }
  static uint8_t chunks(uint8_t first) { return static_cast<uint8_t>(first | 3 << 4); }
};

/// How far a step gets: sends so many bytes and runs so many jobs before the next.
constexpr uint8_t some(uint8_t bytes) { return static_cast<uint8_t>(bytes << 2 | 3); }
constexpr uint8_t jobs(uint8_t count) { return static_cast<uint8_t>(count << 2 | 1); }

} // namespace

std::vector<verb_seed> verb_seeds() {
  std::vector<verb_seed> all;
  auto seed = [&](const std::string& name, const writer& made) { all.push_back({name, made.bytes}); };

  seed("stores", writer().ready(0).store(0, 0).store(0, 2).store(0, 8).store(0, 12).lookup(0, 0, false));
  seed("leases", writer()
                     .ready(0)
                     .store(0, 0)
                     .lookup(0, 0, true)
                     .add(kind::read_lease, 0, {0, 16, 0})
                     .add(kind::load, 0, {0, writer::chunks(0), 0, 1, 0, 0, 0, 0})
                     .add(kind::release, 0, {0}));
  seed("loads", writer()
                    .ready(0, 0)
                    .store(0, 0)
                    .add(kind::load, 0, {0, writer::chunks(0), 0, 0, 0, 0, 0, 0})
                    .add(kind::unregister_region, 0, {0})
                    .add(kind::close_space, 0, {0}));
  seed("prefetches", writer()
                         .ready(0)
                         .store(0, 0)
                         .lookup(0, 0, true)
                         .add(kind::prefetch, 0, {0, writer::chunks(0), 0, 4, 0, 0})
                         .add(kind::prefetch, 0, {0, writer::chunks(0), 0, 2, 0, 0, 0}, jobs(4))
                         .add(kind::release, 0, {0}));
  seed("staging", writer()
                      .ready(0)
                      .add(kind::map_segment, 0, {1})
                      .add(kind::map_segment, 0, {0})
                      .add(kind::reserve, 0, {0, writer::chunks(0), 0, 0})
                      .add(kind::commit, 0, {0, 0})
                      .add(kind::reserve, 0, {0, writer::chunks(4), 0, 0})
                      .add(kind::abort, 0, {1})
                      .lookup(0, 0, false));
  seed("inferences", writer(8)
                         .ready(0)
                         .add(kind::store, 0, {0, writer::chunks(0), 0, 0, 0, 0, 200})
                         .add(kind::lookup, 0, {0, writer::chunks(0), 0, 1, 0, 201})
                         .add(kind::end_inference, 0, {1})
                         .add(kind::policies, 0)
                         .add(kind::set_policy, 0, {1})
                         .add(kind::status, 0));
  seed("clears", writer()
                     .ready(0)
                     .store(0, 0)
                     .store(0, 4)
                     .lookup(0, 0, true)
                     .add(kind::clear, 0, {1})
                     .store(0, 0)
                     .add(kind::clear, 0, {0})
                     .lookup(0, 0, false));
  seed("named_lookups", writer()
                            .ready(0)
                            .ready(1)
                            .store(0, 0)
                            .add(kind::await_lookup, 1, {0, 0})
                            .add(kind::lookup, 0, {0, writer::chunks(0), 0, 3, 0, 0})
                            .add(kind::await_lookup, 1, {0, 0})
                            .add(kind::await_lookup, 1, {1, 1})
                            .add(kind::cancel, 0, {1})
                            .add(kind::cancel, 1, {2}));
  seed("followed_stores", writer()
                              .ready(0)
                              .ready(1)
                              .add(kind::follow, 1, {0, 0, 0})
                              .add(kind::announce, 0, {0, writer::chunks(0), 0, 0, 0})
                              .add(kind::follow, 1, {0, 1, 0})
                              .store(0, 0)
                              .add(kind::announce, 0, {0, writer::chunks(2), 0, 0, 0})
                              .add(kind::cancel, 0, {2}));
  seed("sessions", writer()
                       .ready(0)
                       .ready(1)
                       .add(kind::open_session, 0, {0, 0})
                       .add(kind::lookup, 0, {0, writer::chunks(0), 0, 161, 0, 0})
                       .add(kind::fork_session, 0, {0, 0, 20})
                       .add(kind::lookup, 1, {0, writer::chunks(1), 0, 162, 0, 0})
                       .add(kind::lookup, 0, {0, writer::chunks(0), 0, 167, 0, 0})
                       .add(kind::sessions, 1)
                       .add(kind::close_session, 1, {0})
                       .add(kind::close_session, 0, {0})
                       .add(kind::open_session, 0, {0, 15}));
  seed("held_sessions", writer()
                            .ready(0)
                            .ready(1)
                            .add(kind::store, 0, {0, writer::chunks(0), 200, 0, 0, 0, 0})
                            .add(kind::open_session, 0, {0, 15})
                            .add(kind::save_session, 0, {0, writer::chunks(0), 0, 0, 0})
                            .add(kind::sessions, 1)
                            .add(kind::fork_session, 1, {0, 0, 20})
                            .add(kind::save_session, 1, {0, writer::chunks(0), 0, 1, 0})
                            .add(kind::save_session, 1, {0, writer::chunks(0), 0, 7, 1})
                            .add(kind::clear, 0, {1})
                            .add(kind::save_session, 0, {0, writer::chunks(2), 0, 0, 0})
                            .add(kind::close_session, 1, {0})
                            .add(kind::close_session, 0, {0}));
  seed("prompts", writer()
                      .ready(0)
                      .add(kind::store, 0, {0, writer::chunks(0), 200, 0, 0, 0, 0})
                      .add(kind::save_prompt, 0, {0, writer::chunks(0), 200, 0})
                      .add(kind::save_prompt, 0, {0, writer::chunks(0), 200, 1})
                      .add(kind::clear, 0, {1}));
  seed("operators", writer()
                        .ready(0)
                        .ready(1)
                        .store(0, 0)
                        .lookup(0, 0, true)
                        .add(kind::leases, 1, {0})
                        .add(kind::read_lease, 1, {0, 0, 0})
                        .add(kind::revoke, 0, {0})
                        .add(kind::release, 1, {0})
                        .add(kind::pin, 0, {0, writer::chunks(0), 0, 0})
                        .add(kind::move, 0, {0, writer::chunks(0), 0, 0})
                        .add(kind::move, 1, {0, writer::chunks(0), 0, 1})
                        .add(kind::evict, 1, {0, writer::chunks(0), 0, 0})
                        .add(kind::pin, 1, {0, writer::chunks(0), 0, 0})
                        .add(kind::unpin, 0, {0, writer::chunks(0), 0})
                        .add(kind::set_log_level, 0)
                        .add(kind::recent_lookups, 0, {1, 0, 0})
                        .add(kind::remote_status, 0)
                        .add(kind::remote_probe, 0, {0})
                        .add(kind::remote_sweep, 0, {0, 0})
                        .add(kind::shutdown, 0));
  seed("shared_leases", writer()
                            .ready(0)
                            .ready(1)
                            .store(0, 0)
                            .lookup(0, 0, true)
                            .add(kind::load, 1, {0, writer::chunks(0), 0, 1, 0, 0, 0, 0}, jobs(3))
                            .add(kind::read_lease, 1, {0, 0, 0}, jobs(2))
                            .add(step::close, 0, {}, jobs(1))
                            .add(step::close, 1, {}));
  seed("full_memory", writer()
                          .ready(0)
                          .ready(1)
                          .store(0, 0)
                          .store(0, 4)
                          .store(1, 8)
                          .store(1, 12)
                          .lookup(0, 0, true)
                          .lookup(0, 4, true)
                          .lookup(1, 8, true)
                          .store(1, 14, jobs(9))
                          .store(0, 14, jobs(1))
                          .add(kind::cancel, 0, {2})
                          .add(step::pass, 0, {16})
                          .add(kind::release, 0, {0}));
  seed("deaths", writer(1)
                     .ready(0)
                     .ready(1)
                     .store(0, 0, jobs(5))
                     .lookup(1, 0, true, jobs(2))
                     .add(step::end_process, 0, {}, jobs(1))
                     .store(1, 4, jobs(4))
                     .add(step::close, 1, {}, jobs(2))
                     .add(step::greet, 1, {0})
                     .add(step::end_process, 1));
  seed("unread", writer()
                     .ready(0)
                     .add(step::stop_reading, 0)
                     .add(kind::status, 0)
                     .add(kind::status, 0)
                     .add(kind::status, 0)
                     .add(kind::status, 0)
                     .add(kind::status, 0)
                     .add(step::pass, 0, {15})
                     .add(step::read_again, 0)
                     .add(kind::status, 0));
  seed("pieces", writer()
                     .add(step::greet, 0, {0}, some(5))
                     .add(kind::open_space, 0, {5}, some(40))
                     .add(kind::register_region, 0, {3}, some(60))
                     .add(kind::status, 0, {}, some(63))
                     .add(kind::status, 0, {}, some(1))
                     .add(step::pass, 0, {19}));
  seed("observer", writer()
                       .add(step::greet, 0, {15})
                       .add(kind::status, 0)
                       .add(kind::policies, 0)
                       .add(kind::open_space, 0, {0})
                       .add(step::connect, 1)
                       .add(step::pass, 1, {15}));
  seed("isolated", writer(6)
                       .ready(0)
                       .store(0, 0)
                       .add(kind::map_segment, 0, {0})
                       .add(kind::reserve, 0, {0, writer::chunks(0), 0, 0})
                       .lookup(0, 0, true)
                       .ready(3)
                       .add(kind::clear, 3, {0}));
  seed("spaces", writer()
                     .add(step::greet, 0, {0})
                     .add(kind::open_space, 0, {0})
                     .add(kind::open_space, 0, {1})
                     .add(kind::open_space, 0, {5})
                     .add(kind::open_space, 0, {6})
                     .add(kind::close_space, 0, {0})
                     .add(kind::open_space, 0, {14})
                     .add(kind::open_space, 0, {3}));

  auto samples = protocol::test::sample_frames();
  for (size_t i = 0; i < samples.size(); ++i)
    seed("sample" + std::to_string(static_cast<unsigned>(samples[i].kind)),
         writer().ready(0).add(step::mutate, 0, {static_cast<uint8_t>(i), 1, 9, 1}));
  for (uint16_t number = 1; number <= protocol::last_request; ++number) {
    auto verb = static_cast<kind>(number);
    seed(std::string(to_string(verb)), writer().ready(0).store(0, 0).add(verb, 0, {}));
  }
  return all;
}

} // namespace terrace::fuzz
