#include "policy/open_requests.hpp"

namespace terrace {

void long_request::find(const entry_table& table, std::span<const entry_key> part, bool remember) {
  for (entry_key key : part) {
    bool tracked = table.find(key) != no_entry;
    if (!tracked && (!remember || key.empty()))
      continue;
    ++found_;
    if (!tracked)
      continue;
    known_ = found_;
    last_known_ = key;
  }
}

void long_request::go_on(access_history& history, const entry_table& table, uint32_t stamp) {
  if (!begun_) {
    entry_index last = known_ == 0 ? no_entry : table.find(last_known_);
    if (last == no_entry) // never added, or forgotten meanwhile
      known_ = 0;
    begun_ = history.open(found_, known_, last, hints_.turn, hints_.space);
    left_ = found_;
  }
  history.go_on(*begun_, stamp);
}

void long_request::mark(access_history& history, entry_index at) {
  left_ -= left_ == 0 ? 0 : 1;
  history.mark(*begun_, at, left_);
}

} // namespace terrace
