#include "actors/connection/named_lookup.hpp"

#include <caf/send.hpp>

namespace terrace::actors {

void named_lookup::answered(lookup_outcome outcome) {
  told_ = true;
  caf::anon_send(group_,
                 finish_lookup_notice{id_, std::make_shared<const lookup_outcome>(std::move(outcome))});
}

named_lookup::~named_lookup() {
  if (told_)
    return;
  lookup_outcome none;
  if (context_->live())
    none.failure = {errc::gone, "the lookup has no answer: it was refused, or its connection ended"};
  else
    none.failure = {context_->ended.load(), "the lookup ended before it was answered"};
  answered(std::move(none));
}

} // namespace terrace::actors
