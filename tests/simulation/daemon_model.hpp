// What clients of a simulated daemon were told, and the check that what they see agrees with it. The model knows nothing of
// how the daemon works. Time in it is the order of what clients sent and received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace terrace::simulation {

/// An object as its clients name it: the pool's part of a chunk. `chain` stands for all tokens up to its end.
struct named_object {
  uint32_t group = 0;
  uint32_t space = 0;
  uint64_t chain = 0;
  uint32_t pool = 0;
  bool tail = false; ///< of a partial chunk, which is removed when nobody refers to it any more
  auto operator<=>(const named_object&) const = default;
  std::string text() const;
};

class daemon_model {
 public:
  using version = uint64_t; ///< of an object's bytes; each store has its own. 0: none

  /// The time of something that a client does now.
  uint64_t now() { return ++now_; }

  // ---- what clients asked for and were told ----

  /// A store of the object is about to be sent.
  version writes(const named_object& object);
  /// The bytes of an object in this version.
  static void fill(std::span<std::byte> bytes, version which);
  /// The store that was asked for at `asked` has been answered. `there`: all its objects are.
  void stored(std::span<const version> versions, uint64_t asked, bool there);

  struct removal {
    uint32_t group = 0;
    std::optional<uint32_t> space; ///< all
    uint64_t asked = 0;
  };
  /// A clear is about to be sent.
  removal clears(uint32_t group, std::optional<uint32_t> space);
  void cleared(const removal& which, bool done);
  /// A request that may remove some of these is about to be sent; `removed`: it has been answered. Returns its time.
  uint64_t removes(std::span<const named_object> objects);
  void removed();
  /// Every tier was asked at that time to remove these, and has.
  void evicted(std::span<const named_object> objects, uint64_t asked);

  /// No request is in progress any more: all were answered, or their connections ended some time ago.
  void all_quiet();
  /// The daemon has lost its memory, and what the disk has is anybody's guess.
  void crashed();
  /// The daemon has ended in order and was started again.
  void restarted();

  /// Somebody holds these objects, which were found at the time `asked`, until `ends_keep`. Returns a number; 0: none can be
  /// relied on, because something was being removed meanwhile.
  uint64_t keeps(std::span<const named_object> objects, uint64_t asked);
  void ends_keep(uint64_t number) { kept_.erase(number); }

  // ---- what must hold ----

  /// A client was told that bytes of the object on disk are wrong, as a crash in the middle of a write leaves them: nobody keeps it.
  void is_damaged(const named_object& object);

  /// Bytes that a request of the time `asked` returned for the object. Returns their version.
  version check(const named_object& object, std::span<const std::byte> bytes, uint64_t asked);
  struct promises {
    bool all_found = false;     ///< nothing is lost unless somebody asks: what was stored is found
    bool disk_has_all = false;  ///< because it is written to the disk, while memory has no room
    bool kept_found = false;    ///< no device fails: what somebody holds is found
    bool restart_keeps = false; ///< all that was stored is on disk when the daemon has ended in order
  };
  void promise(const promises& made) { promised_ = made; }
  /// The group has a remote store. From there memory gets what a crash has taken from the disk, and what is in memory is not stored again.
  void shares(uint32_t group) { sharing_group_ = group; }
  /// A device with a tier may fail.
  void promise_no_more_kept() { promised_.kept_found = false; }

  /// What a lookup that is about to be sent must find: leading objects.
  struct expectation {
    uint64_t asked = 0;
    std::vector<named_object> objects;
    std::vector<uint64_t> because; ///< of each object, who keeps it; 0: it was stored, and nothing is evicted
  };
  expectation expects(std::span<const named_object> objects);
  /// The lookup found this many of the objects.
  void found(size_t count, const expectation& expected);

  void broke(const std::string& what) { broken_.push_back(what); }
  const std::vector<std::string>& broken() const { return broken_; }
  uint64_t checked() const { return checked_; }
  /// Whether everything of the group was cleared then or later, or may have been.
  bool cleared_since(uint32_t group, uint64_t time) const;
  uint64_t clears_answered() const { return clears_answered_; }

 private:
  struct written {
    named_object object;
    uint64_t ended = 0;   ///< 0: not yet
    uint64_t dead_at = 0; ///< 0: it may be there
    bool cleared = false; ///< it is dead for ever; otherwise a crash may bring it back
  };

  bool is_kept(uint64_t number, const named_object& object) const {
    auto kept = kept_.find(number);
    return kept != kept_.end() && kept->second.contains(object);
  }

  uint64_t now_ = 0;
  std::vector<written> written_; ///< by version - 1
  std::set<named_object> there_;
  /// A request removed or moved them, or was in progress while they were stored. So one tier alone may have them, and
  /// another store, which finds them there, writes them to no other one.
  std::set<named_object> moved_;
  promises promised_;
  std::map<uint64_t, std::set<named_object>> kept_;
  std::optional<uint32_t> sharing_group_;
  bool has_crashed_ = false;
  size_t removing_ = 0;       ///< requests in progress that may remove something
  uint64_t last_removed_ = 0; ///< the end of the last one
  struct clearing {
    size_t in_progress = 0;
    uint64_t ended = 0; ///< the last one
  };
  std::map<uint32_t, clearing> clearing_; ///< of all spaces, by group
  std::vector<std::string> broken_;
  uint64_t checked_ = 0;
  uint64_t clears_answered_ = 0;
};

} // namespace terrace::simulation
