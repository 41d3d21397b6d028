// A link to a remote store over a poll loop in place of the ring of a worker, for the tests of one kind of link each.
#pragma once

#include "actors/remote/store_link.hpp"
#include "tests/support/s3_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace terrace::test {

using std::chrono::steady_clock;

/// Does what the ring does for a link: polls sockets, and waits.
class poll_ring {
 public:
  runtime::operation_id submit(runtime::io_request request, uint64_t tag) {
    const runtime::operation_id id{++last_};
    const auto until = steady_clock::now() + request.after;
    operations_.push_back({std::move(request), tag, id, until});
    return id;
  }
  void cancel(runtime::operation_id id) {
    for (auto& each : operations_)
      each.cancelled |= each.id == id;
  }
  bool empty() const { return operations_.empty(); }
  /// A poll for bytes that arrive has not finished.
  bool awaits_bytes() const {
    return std::ranges::any_of(operations_, [](const operation& each) {
      return each.request.code == runtime::io_code::poll && (each.request.events & POLLIN) != 0 &&
             !each.cancelled;
    });
  }

  /// Waits until an operation is done, and returns it.
  std::pair<uint64_t, int32_t> next() {
    while (true) {
      std::vector<pollfd> polled;
      auto until = steady_clock::time_point::max();
      for (auto each = operations_.begin(); each != operations_.end(); ++each) {
        const bool is_poll = each->request.code == runtime::io_code::poll;
        if (each->cancelled)
          return take(each, -ECANCELED);
        if (is_poll)
          polled.push_back({each->request.fd, static_cast<short>(each->request.events), 0});
        else if (each->until <= steady_clock::now())
          return take(each, -ETIME);
        else
          until = std::min(until, each->until);
      }
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(wait, 0, 60'000)));
      for (const pollfd& ready : polled)
        if (ready.revents != 0)
          return take(std::ranges::find_if(operations_,
                                           [&](const operation& each) {
                                             return each.request.code == runtime::io_code::poll &&
                                                    each.request.fd == ready.fd;
                                           }),
                      ready.revents);
    }
  }

 private:
  struct operation {
    runtime::io_request request;
    uint64_t tag;
    runtime::operation_id id;
    steady_clock::time_point until;
    bool cancelled = false;
  };
  std::pair<uint64_t, int32_t> take(std::deque<operation>::iterator done, int32_t result) {
    const uint64_t tag = done->tag;
    operations_.erase(done);
    return {tag, result};
  }

  std::deque<operation> operations_;
  uint64_t last_ = 0;
};

class link_fixture : public ::testing::Test {
 protected:
  using finished_command = remote::finished_command;
  using command_result = remote::command_result;

  static constexpr uint64_t first_tag = 1'000;

  /// Of the link that the test makes.
  actors::store_link::callbacks callbacks(std::chrono::nanoseconds silence_max) {
    return {.first_tag = first_tag,
            .silence_max = silence_max,
            .submit = [this](runtime::io_request request,
                             uint64_t tag) { return ring_.submit(std::move(request), tag); },
            .cancel = [this](runtime::operation_id id) { ring_.cancel(id); },
            .ready = [this] { ++times_ready_; },
            .finished = [this](const finished_command& told) { told_.push_back(told); },
            .failed =
                [this](const std::string& why) {
                  failure_ = why;
                  ++failures_;
                  refused_ = link_->refused();
                  link_->end();
                },
            .hedged = [this](bool won) { ++(won ? hedges_won_ : hedges_sent_); },
            .retried = [this](bool writes) { ++(writes ? writes_retried_ : reads_retried_); },
            .turned = [this] { link_->pump(nullptr); }};
  }
  void turn() {
    const auto [tag, result] = ring_.next();
    link_->on_io_done(tag, result);
  }
  /// Returns once the link is ready or has failed.
  void connect_to(const std::string& address, const remote::store_credentials& with = {}) {
    failure_.clear();
    link_->connect(remote::parse_store_address(address).value(), with);
    while (!link_->ready() && failure_.empty())
      turn();
  }
  /// The next command that finishes; none: the link has failed.
  std::optional<finished_command> next() {
    link_->pump(nullptr);
    while (told_.empty() && failure_.empty())
      turn();
    if (told_.empty())
      return std::nullopt;
    auto first = std::move(told_.front());
    told_.pop_front();
    return first;
  }
  command_result result() {
    auto told = next();
    EXPECT_TRUE(told) << failure_;
    return told ? told->result : command_result::refused;
  }
  void end() {
    link_->end();
    while (!link_->idle())
      turn();
    link_->forget();
  }
  remote::store_commands& server() { return *link_->server(); }
  void write(const std::string& key, const std::string& text) {
    server().write_text(0, key, text);
    ASSERT_EQ(result(), command_result::done);
  }
  static std::span<std::byte> bytes_in(std::string& text) { return std::as_writable_bytes(std::span(text)); }

  poll_ring ring_;
  std::unique_ptr<actors::store_link> link_;
  std::deque<finished_command> told_;
  std::string failure_;
  int times_ready_ = 0, failures_ = 0, hedges_sent_ = 0, hedges_won_ = 0;
  int reads_retried_ = 0, writes_retried_ = 0;
  bool refused_ = false;
};

/// A link to a bucket of a store that fails as it is told.
class s3_link_fixture : public link_fixture {
 protected:
  void SetUp() override { make(std::chrono::seconds(60)); }
  ~s3_link_fixture() override { end(); }

  void make(std::chrono::nanoseconds silence_max) { link_ = actors::make_s3_link(callbacks(silence_max)); }
  void connect(const std::string& password = s3_process::secret_key) {
    connect_to("s3://" + store_.place(), {.login = {.user = s3_process::access_key, .password = password}});
  }

  s3_process store_;
};

} // namespace terrace::test
