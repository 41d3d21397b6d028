// A lookup that others may wait for, as the connection that looks up holds it.
#pragma once

#include "actors/interfaces.hpp"

namespace terrace::actors {

/// Tells the group what came of the lookup. When its last copy goes before there was an answer, those who wait hear that.
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
