// A release_sink that sends messages to a tier's actor.
#pragma once

#include "actors/interfaces.hpp"
#include "tier/release_sink.hpp"

#include <caf/actor.hpp>
#include <caf/send.hpp>

#include <utility>

namespace terrace::actors {

/// Safe on any thread. Keeps the actor's memory alive, not the actor: after its end the messages are dropped.
class actor_release_sink final : public release_sink {
 public:
  explicit actor_release_sink(caf::actor tier) : tier_(std::move(tier)) {}
  void release(std::vector<object_id> held) override {
    caf::anon_send(tier_, release_notice{std::move(held)});
  }
  void abandon(std::vector<object_id> reserved) override {
    caf::anon_send(tier_, abandon_notice{std::move(reserved)});
  }

 private:
  caf::actor tier_;
};

} // namespace terrace::actors
