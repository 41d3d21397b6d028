#include "remote/epoch_token.hpp"

#include "remote/realm.hpp"

#include <algorithm>
#include <utility>

namespace terrace::remote {

std::string epoch_token::written(uint64_t random) {
  writing_ = owes_ ? random | 1 : (random | 2) & ~uint64_t{1};
  return epoch_text(writing_);
}

bool epoch_token::was_read(std::string_view text, time_point now) {
  auto read = parse_epoch(text);
  if (!read) {
    owes_ = true; // nobody can read it
    return false;
  }
  if (std::find(cleared_.begin(), cleared_.end(), *read) != cleared_.end()) {
    owes_ = true;
    return false;
  }
  // A store that knows no conditions let a machine that had found none replace the token of the clear.
  if (std::exchange(confirms_, false) && (*read & 1) == 0) {
    owes_ = true;
    return false;
  }
  known_ = true;
  since_ = now;
  const uint64_t former = value_;
  becomes(*read);
  return former != 0 && former != value_ && (value_ & 1) != 0;
}

void epoch_token::was_cleared() {
  owes_ = absent_ = known_ = false;
  confirms_ = true;
  becomes(writing_);
}

void epoch_token::becomes(uint64_t value) {
  const auto add = [](auto& values, uint64_t one) {
    std::rotate(values.begin(), values.end() - 1, values.end());
    values.front() = one;
  };
  const uint64_t former = std::exchange(value_, value);
  if (former == 0 || former == value)
    return;
  add(former_, former);
  if ((value & 1) == 0)
    return;
  for (uint64_t& one : former_)
    if (one != 0)
      add(cleared_, std::exchange(one, 0));
}

} // namespace terrace::remote
