// A release_sink that sends messages to a tier's actor.
#pragma once

#include "actors/interfaces.hpp"
#include "memory/teardown.hpp"
#include "tier/objects/object_hold.hpp"

#include <caf/actor.hpp>
#include <caf/send.hpp>

#include <utility>

namespace terrace::actors {

/// Safe on any thread. Keeps the actor's memory alive, not the actor: after its end the messages are dropped.
class actor_release_sink final : public release_sink {
 public:
  /// `ends` goes through holds of many objects away from the workers; null: the caller does.
  explicit actor_release_sink(caf::actor tier, teardown_ptr ends = nullptr)
      : tier_(std::move(tier)), ends_(std::move(ends)) {}
  void release(std::vector<object_id> held) override {
    caf::anon_send(tier_, release_notice{std::move(held)});
  }
  void release_places(std::vector<object_place> held) override {
    auto end = [tier = tier_, held = std::move(held)] {
      if (auto ids = ids_of(held); !ids.empty())
        caf::anon_send(tier, release_notice{std::move(ids)});
    };
    if (ends_)
      ends_->run(std::move(end));
    else
      end();
  }
  void abandon(std::vector<object_id> reserved) override {
    caf::anon_send(tier_, abandon_notice{std::move(reserved)});
  }

 private:
  caf::actor tier_;
  teardown_ptr ends_;
};

} // namespace terrace::actors
