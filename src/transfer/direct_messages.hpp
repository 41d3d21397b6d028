// Messages about objects on disk that a device reads itself.
#pragma once

#include "base/error.hpp"
#include "base/object_key.hpp"
#include "base/unique_fd.hpp"
#include "index/object_header.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/object_place.hpp"
#include "transfer/copy_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Objects of a disk tier, which are held, into a region. `copy` is without generations, announcement and arena.
struct direct_load {
  space_ptr space;
  copy_request copy;
  std::vector<object_key> keys;     ///< parallel to its objects
  std::vector<object_place> places; ///< the same
};

/// An object in a file: its extent begins there with the header block, and is as long as `physical_bytes_for` says.
struct object_in_file {
  std::shared_ptr<named_file> file; ///< open for O_DIRECT
  uint64_t file_offset = 0;
  expected_object expected;
};
/// To the device of the region: its process reads the objects into memory of the device, verifies them there, and copies them into
/// the region.
struct direct_read_request {
  copy_request copy;
  std::vector<object_in_file> files; ///< parallel to its objects
};

/// `failure`: `unsupported` or `busy` if nothing was tried: the device does not read this, or not yet; `gone` with the process; or
/// the end of the context.
struct direct_read_answer {
  error failure;
  size_t objects = 0; ///< the first ones, which are in the region; what follows has to be read in another way
};

} // namespace terrace
