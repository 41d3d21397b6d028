#include "base/busy_poll.hpp"

#include <sys/resource.h>

namespace terrace {

bool preemption_count::grew() {
  rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) != 0)
    return false;
  bool more = used.ru_nivcsw > last_;
  last_ = used.ru_nivcsw;
  return more;
}

} // namespace terrace
