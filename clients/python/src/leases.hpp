// Leases, the objects read under them, and reservations.
#pragma once

#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <vector>

namespace terrace::python {

/// A lease with everything that needs it: the handle that Python releases, and every object that was read
/// under it. It is given back when the last of them goes, so a view never shows another object's bytes.
class held_lease {
 public:
  held_lease(std::shared_ptr<shared_connection> in, client::lease lease)
      : in_(std::move(in)), lease_(std::move(lease)) {}
  ~held_lease() { in_->give_back(std::move(lease_)); }
  held_lease(const held_lease&) = delete;
  held_lease& operator=(const held_lease&) = delete;

  const lease_id& id() const { return lease_.id(); }

  /// number of object lists in use that were read under it; counted with the GIL held
  int reads_in_use = 0;

 private:
  std::shared_ptr<shared_connection> in_;
  client::lease lease_;
};

/// Python's terrace.Lease.
struct lease_handle {
  std::shared_ptr<held_lease> held; ///< empty: the lease was released
  lease_id id;
};

/// Python's terrace.Located.
struct located_handle {
  nb::list objects; ///< list of exported_bytes
  uint64_t first_token = 0;
  std::optional<client::missing_object> missing;

  /// Copies into other memory, one destination per object, and returns the number of bytes.
  uint64_t copy_into(nb::handle given) const;
};

/// A reservation with everything that may write to its memory: Python's handle and the objects' Buffers. It
/// is aborted when the last of them goes, so no Buffer ever points to memory that belongs to something else.
struct held_reservation {
  held_reservation(std::shared_ptr<shared_connection> connection, client::reservation made)
      : in(std::move(connection)), reserved(std::move(made)) {}
  ~held_reservation() { in->give_back(std::move(reserved)); }
  held_reservation(const held_reservation&) = delete;
  held_reservation& operator=(const held_reservation&) = delete;

  std::shared_ptr<shared_connection> in;
  client::reservation reserved;
};

/// Python's terrace.Reservation.
class reservation_handle {
 public:
  explicit reservation_handle(std::shared_ptr<held_reservation> held);

  nb::list objects() const { return objects_; }
  bool open() const { return held_ != nullptr; }
  void write(nb::handle sources);
  void abort();

  /// Takes it for the commit. Refuses while views are exported, and when it is already over.
  std::shared_ptr<held_reservation> take();

 private:
  std::shared_ptr<held_reservation> held_; ///< empty: it was committed or aborted
  nb::list objects_;
};

/// A request's argument for its lease: a terrace.Lease, or the 16 bytes of another connection's.
struct lease_argument {
  explicit lease_argument(nb::handle given);
  lease_id id;
  std::shared_ptr<held_lease> held; ///< empty for bytes: somebody else holds the lease
};

void bind_leases(nb::module_& in);

} // namespace terrace::python
