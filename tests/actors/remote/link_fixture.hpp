// A link to a remote store over a poll loop, for the tests of one kind of link each.
#pragma once

#include "actors/remote/store_link.hpp"
#include "poll_ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace terrace::test {

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
  bool refused_ = false;
};

} // namespace terrace::test
