// A small value per entry of a tier, initially 0.
#pragma once

#include "policy/entry_table.hpp"

#include <cstdint>

namespace terrace {

template <class T>
class entry_marks {
 public:
  T get(entry_index at) const { return at < reached_ ? column_[at] : T{}; }
  void set(entry_index at, T value) {
    if (at >= reached_) {
      column_.reach(at + size_t{1});
      reached_ = (at / column_.page_elements + 1) * column_.page_elements;
    }
    column_[at] = value;
  }
  size_t bytes() const { return column_.bytes(); }

 private:
  paged_column<T> column_;
  size_t reached_ = 0;
};

} // namespace terrace
