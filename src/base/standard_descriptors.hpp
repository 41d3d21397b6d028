// Descriptors 0, 1 and 2 of a process that was started without them.
#pragma once

namespace terrace {

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise a socket or a file of this process would
/// get the number, and receive what is printed. Such a descriptor is open in the wrong direction: reading standard input
/// and writing the other two still fails. Call this first in `main`.
void occupy_standard_descriptors();

} // namespace terrace
