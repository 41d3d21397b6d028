// Puts millions of records in the order of their generations.
#pragma once

#include "storage/index_record.hpp"

#include <vector>

namespace terrace {

/// By ascending generation; those of one generation keep their order. Sorts pairs of generation and place, by the bits of
/// generations that differ, and moves each record once: an order of magnitude faster than sorting the records.
void sort_by_generation(std::vector<index_record>& records);

} // namespace terrace
