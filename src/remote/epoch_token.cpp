#include "remote/epoch_token.hpp"

#include "remote/realm.hpp"

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
  known_ = true;
  since_ = now;
  const uint64_t former = std::exchange(value_, *read);
  return former != 0 && former != value_ && (value_ & 1) != 0;
}

void epoch_token::was_cleared(time_point now) {
  owes_ = absent_ = false;
  known_ = true;
  since_ = now;
  value_ = writing_;
}

} // namespace terrace::remote
