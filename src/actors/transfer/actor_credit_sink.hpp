// Returns write credits to the write-through actor.
#pragma once

#include "actors/interfaces.hpp"
#include "tier/space/write_credit.hpp"

#include <caf/actor.hpp>
#include <caf/send.hpp>

#include <utility>

namespace terrace::actors {

/// Safe on any thread. Keeps the actor's memory alive, not the actor: after its end the messages are dropped.
class actor_credit_sink final : public credit_sink {
 public:
  explicit actor_credit_sink(caf::actor write_through) : write_through_(std::move(write_through)) {}
  void give_back(uint64_t bytes) override { caf::anon_send(write_through_, write_credit_notice{bytes}); }

 private:
  caf::actor write_through_;
};

} // namespace terrace::actors
