// The handle of a lookup with an id, owned by the connection that looks up.
#pragma once

#include "actors/interfaces.hpp"

namespace terrace::actors {

/// Reports the lookup's result to the group. If its last copy is destroyed before an answer, waiting requests
/// get an error.
class named_lookup {
 public:
  named_lookup(group_actor group, const lookup_id& id, context_ptr context)
      : group_(std::move(group)), id_(id), context_(std::move(context)) {}
  named_lookup(const named_lookup&) = delete;
  named_lookup& operator=(const named_lookup&) = delete;
  ~named_lookup();

  void answered(lookup_outcome outcome);

 private:
  group_actor group_;
  lookup_id id_;
  context_ptr context_;
  bool told_ = false;
};

} // namespace terrace::actors
