#include "connection/lookup_answers.hpp"

namespace terrace {

void named_lookup::answered(lookup_outcome outcome) {
  std::exchange(tell_, nullptr)({id_, context_, std::make_shared<const lookup_outcome>(std::move(outcome))});
}

named_lookup::~named_lookup() {
  if (!tell_)
    return;
  lookup_outcome none;
  errc why = context_->ended.load();
  if (why == errc::ok || why == errc::gone)
    none.failure = {errc::gone, "the lookup has no answer: it was refused, or its connection ended"};
  else
    none.failure = {why, "the lookup ended before it was answered"};
  answered(std::move(none));
}

} // namespace terrace
