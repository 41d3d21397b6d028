// A whole trust group on one thread over the simulated ring, and what must hold of it once its clients are gone.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/supervision/group_builder.hpp"
#include "tests/support/simulated_actors.hpp"

#include <memory>

namespace terrace::fuzz {

class verb_group : public test::simulated_actors {
 public:
  static constexpr uint64_t payload = 4096;
  static constexpr uint64_t host_objects = 16;

  struct options {
    bool shuffled = false; ///< completions come in any order
    bool isolated = false;
    bool shadows = false;
  };

  explicit verb_group(const options& chosen);
  ~verb_group();

  /// A client's socket; its process ends when `process` becomes readable.
  unique_fd connect(pid_t pid, uid_t uid, std::shared_ptr<unique_fd> process);

  /// Time passes, for deadlines and for the ring.
  void pass(std::chrono::milliseconds by);

  /// Objects that a lookup would find.
  uint64_t findable() const { return group_->tiers().front().index->table().published(); }

  /// All clients have gone, and so have their processes: nothing that they held is left, memory is whole, and after a
  /// clear nothing can be found.
  void check_empty();

 private:
  template <class Answer, class Handle, class Message>
  Answer ask(const Handle& who, Message message);

  std::chrono::steady_clock::time_point now_{std::chrono::hours(1000)};
  std::shared_ptr<actors::copier_pool> copiers_;
  group_probes probes_;
  std::shared_ptr<actors::trust_group> group_;
  std::shared_ptr<actors::connection_environment> environment_;
  region_budget_ptr regions_;
  uint64_t connections_ = 0;
  size_t running_ = 0; ///< actors without any client
};

} // namespace terrace::fuzz
