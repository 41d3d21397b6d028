// The handle of a lookup with an id. The connection that looks up owns it.
#pragma once

#include "group/lookup_messages.hpp"

#include <functional>
#include <utility>

namespace terrace {

/// Reports the lookup's result to the group. It is created before the group is asked to begin the lookup, so
/// that no lookup stays begun without an owner. If its last copy is destroyed before an answer, waiting
/// requests get an error: `gone` if the lookup was refused or its connection ended, otherwise the error that
/// ended it.
class named_lookup {
 public:
  /// `tell` sends to the group, after everything sent before; it is called once.
  named_lookup(const lookup_id& id, context_ptr context, std::function<void(finish_lookup_notice)> tell)
      : id_(id), context_(std::move(context)), tell_(std::move(tell)) {}
  named_lookup(const named_lookup&) = delete;
  named_lookup& operator=(const named_lookup&) = delete;
  ~named_lookup();

  void answered(lookup_outcome outcome);

 private:
  lookup_id id_;
  context_ptr context_;
  std::function<void(finish_lookup_notice)> tell_; ///< empty: the lookup was answered
};

} // namespace terrace
