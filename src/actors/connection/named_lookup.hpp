// The handle of a lookup with an id, owned by the connection that looks up.
#pragma once

#include "actors/interfaces.hpp"

namespace terrace::actors {

/// Reports the lookup's result to the group. Created before the group is asked to begin the lookup, so that none
/// stays begun without an owner. If its last copy is destroyed before an answer, waiting requests get an error:
/// `gone` if the lookup was refused or its connection ended, otherwise what ended it.
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

/// For a lookup that is refused before it begins: answers all requests that wait for its id with `gone`.
void refuse_named_lookup(const group_actor& group, const lookup_id& id, const context_ptr& context);

} // namespace terrace::actors
