#include "actors/connection/named_lookup.hpp"

#include <caf/send.hpp>

namespace terrace::actors {

void named_lookup::answered(lookup_outcome outcome) {
  told_ = true;
  caf::anon_send(group_, finish_lookup_notice{id_, context_,
                                              std::make_shared<const lookup_outcome>(std::move(outcome))});
}

named_lookup::~named_lookup() {
  if (told_)
    return;
  lookup_outcome none;
  if (errc why = context_->ended.load(); why == errc::ok || why == errc::gone)
    none.failure = {errc::gone, "the lookup has no answer: it was refused, or its connection ended"};
  else
    none.failure = {context_->ended.load(), "the lookup ended before it was answered"};
  answered(std::move(none));
}

void refuse_named_lookup(const group_actor& group, const lookup_id& id, const context_ptr& context) {
  named_lookup refused(group, id, context);
  caf::anon_send(group, begin_lookup_request{id, context}); // before the notice of the destructor
}

} // namespace terrace::actors
