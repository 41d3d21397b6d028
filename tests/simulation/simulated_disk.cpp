#include "simulated_disk.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace terrace::simulation {

namespace {

constexpr uint64_t root_inode = 1;
constexpr uint64_t page_bytes = 4096;

uint64_t up_to_page(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

} // namespace

disk_faults disk_faults::draw(seeded_random& random) {
  constexpr uint32_t most = 200'000;
  return {.read = random.swarm(most),
          .write = random.swarm(most),
          .sync = random.swarm(most),
          .space = random.swarm(most),
          .cut = random.swarm(most)};
}

simulated_disk::simulated_disk(uint64_t seed, uint64_t capacity_bytes)
    : random_(seed), capacity_(capacity_bytes) {
  nodes_[root_inode].directory = true;
  names_["/"] = durable_names_["/"] = root_inode;
}

// ---- names ----

int simulated_disk::look_up_parent(const std::string& path) const {
  if (away_)
    return -EIO;
  auto found = names_.find(parent_of(path));
  if (found == names_.end())
    return -ENOENT;
  return nodes_.at(found->second).directory ? 0 : -ENOTDIR;
}

int simulated_disk::make_node(const std::string& path, bool directory) {
  if (random_.chance(faults_.space))
    return -ENOSPC;
  nodes_[++last_inode_].directory = directory;
  change_name({path, last_inode_, {}});
  return 0;
}

int simulated_disk::open(const std::string& path, int flags) {
  if (int refused = look_up_parent(path); refused != 0)
    return refused;
  bool there = names_.contains(path);
  if (there && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0)
    return -EEXIST;
  if (!there && (flags & O_CREAT) == 0)
    return -ENOENT;
  if (int refused = there ? 0 : make_node(path, false); refused != 0)
    return refused;
  uint64_t inode = names_[path];
  node& file = nodes_[inode];
  if ((flags & O_DIRECTORY) != 0 && !file.directory)
    return -ENOTDIR;
  if (file.directory && (flags & O_ACCMODE) != O_RDONLY)
    return -EISDIR;
  descriptors_[++last_descriptor_] = {inode, (flags & O_DIRECT) != 0};
  if ((flags & O_TRUNC) != 0)
    (void) ftruncate(last_descriptor_, 0);
  return last_descriptor_;
}

int simulated_disk::mkdir(const std::string& path) {
  if (int refused = look_up_parent(path); refused != 0)
    return refused;
  return names_.contains(path) ? -EEXIST : make_node(path, true);
}

int simulated_disk::rename(const std::string& from, const std::string& to) {
  if (int refused = look_up_parent(to); refused != 0)
    return refused;
  auto found = names_.find(from);
  if (found == names_.end())
    return -ENOENT;
  if (parent_of(from) != parent_of(to) || nodes_[found->second].directory)
    return -EXDEV; // the daemon renames files within a directory
  change_name({to, found->second, from});
  release_unused();
  return 0;
}

int simulated_disk::unlink(const std::string& path) {
  if (int refused = look_up_parent(path); refused != 0)
    return refused;
  auto found = names_.find(path);
  if (found == names_.end())
    return -ENOENT;
  if (nodes_[found->second].directory)
    return -EISDIR;
  change_name({path, 0, {}});
  release_unused();
  return 0;
}

void simulated_disk::change_name(name_change change) {
  apply(names_, change);
  unsynced_names_[parent_of(change.name)].push_back(std::move(change));
}

void simulated_disk::apply(names& to, const name_change& change) {
  if (change.inode == 0)
    to.erase(change.name);
  else
    to[change.name] = change.inode;
  if (!change.former.empty() && change.former != change.name)
    to.erase(change.former);
}

uint64_t simulated_disk::count_changes(const std::string& directory) const {
  auto synced = synced_names_.find(directory);
  auto unsynced = unsynced_names_.find(directory);
  return (synced == synced_names_.end() ? 0 : synced->second) +
         (unsynced == unsynced_names_.end() ? 0 : unsynced->second.size());
}

void simulated_disk::sync_names(const std::string& directory, uint64_t changes) {
  auto& waiting = unsynced_names_[directory];
  uint64_t& done = synced_names_[directory];
  uint64_t count = std::min<uint64_t>(changes - std::min(changes, done), waiting.size());
  for (uint64_t i = 0; i < count; ++i)
    apply(durable_names_, waiting[i]);
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  done += count;
}

void simulated_disk::crash_names(survival how) {
  for (auto& [directory, waiting] : unsynced_names_) {
    uint64_t kept = how == survival::nothing      ? 0
                    : how == survival::everything ? waiting.size()
                                                  : random_.below(waiting.size() + 1);
    sync_names(directory, synced_names_[directory] + kept);
  }
  unsynced_names_.clear();
  synced_names_.clear();
  // A parent comes before what is in it, in the order of the names.
  std::erase_if(durable_names_,
                [this](const auto& entry) { return !durable_names_.contains(parent_of(entry.first)); });
  names_ = durable_names_;
}

std::string simulated_disk::name_of(uint64_t inode) const {
  auto found =
      std::find_if(names_.begin(), names_.end(), [&](const auto& entry) { return entry.second == inode; });
  return found == names_.end() ? std::string() : found->first;
}

/// Frees the space of files without a name and a descriptor, unless a crash may bring their name back.
void simulated_disk::release_unused() {
  std::set<uint64_t> used;
  for (const names* all : {&names_, &durable_names_})
    for (const auto& [name, inode] : *all)
      used.insert(inode);
  for (const auto& [directory, waiting] : unsynced_names_)
    for (const name_change& change : waiting)
      used.insert(change.inode);
  for (const auto& [number, open] : descriptors_)
    used.insert(open.inode);
  std::erase_if(nodes_, [&](const auto& entry) { return !used.contains(entry.first); });
}

// ---- files ----

const simulated_disk::node* simulated_disk::find(int descriptor) const {
  auto found = descriptors_.find(descriptor);
  return found == descriptors_.end() ? nullptr : &nodes_.at(found->second.inode);
}

simulated_disk::node* simulated_disk::find(int descriptor) {
  return const_cast<node*>(std::as_const(*this).find(descriptor));
}

int simulated_disk::close(int descriptor) {
  if (descriptors_.erase(descriptor) == 0)
    return -EBADF;
  release_unused();
  return 0;
}

int simulated_disk::set_direct(int descriptor, bool direct) {
  auto found = descriptors_.find(descriptor);
  if (found == descriptors_.end())
    return -EBADF;
  found->second.direct = direct;
  return 0;
}

bool simulated_disk::refuses_direct(int descriptor, uint64_t offset, const std::byte* memory,
                                    uint64_t bytes) const {
  return descriptors_.at(descriptor).direct && (offset % sector_bytes != 0 || bytes % sector_bytes != 0 ||
                                                reinterpret_cast<uintptr_t>(memory) % sector_bytes != 0);
}

/// Returns the length of a transfer, which may be short.
uint64_t simulated_disk::without_rest(uint64_t bytes, uint32_t cut) {
  uint64_t sectors = bytes / sector_bytes;
  if (sectors < 2 || !random_.chance(cut))
    return bytes;
  return random_.between(1, sectors - 1) * sector_bytes;
}

int64_t simulated_disk::read(int descriptor, uint64_t offset, std::span<std::byte> into) {
  const node* file = find(descriptor);
  if (file == nullptr)
    return -EBADF;
  if (file->directory)
    return -EISDIR;
  if (refuses_direct(descriptor, offset, into.data(), into.size()))
    return -EINVAL;
  if (away_ || random_.chance(faults_.read))
    return -EIO;
  uint64_t count = without_rest(into.size(), std::max(faults_.cut, faults_.short_reads));
  auto spoiled = file->unreadable.lower_bound(offset / sector_bytes);
  if (spoiled != file->unreadable.end() && *spoiled * sector_bytes < offset + count)
    return -EIO;
  return static_cast<int64_t>(file->contents.read(offset, into.first(count)));
}

int64_t simulated_disk::write(int descriptor, uint64_t offset, std::span<const std::byte> bytes) {
  node* file = find(descriptor);
  if (file == nullptr || file->directory)
    return -EBADF;
  if (refuses_direct(descriptor, offset, bytes.data(), bytes.size()))
    return -EINVAL;
  if (away_)
    return -EIO;
  if (random_.chance(faults_.write)) {
    cut_off_write(descriptor, offset, bytes);
    return -EIO;
  }
  bytes = bytes.first(without_rest(bytes.size(), faults_.cut));
  if (!reserve(*file, offset + bytes.size()))
    return -ENOSPC;
  for (uint64_t sector = offset / sector_bytes; sector * sector_bytes < offset + bytes.size(); ++sector)
    file->unreadable.erase(sector);
  file->contents.write(offset, bytes);
  return static_cast<int64_t>(bytes.size());
}

void simulated_disk::cut_off_write(int descriptor, uint64_t offset, std::span<const std::byte> bytes) {
  node* file = find(descriptor);
  if (file == nullptr || file->directory || away_)
    return;
  // A page cache takes the bytes in order.
  uint64_t sectors = (bytes.size() + sector_bytes - 1) / sector_bytes;
  uint64_t count = std::min<uint64_t>(bytes.size(), random_.below(sectors + 1) * sector_bytes);
  if (reserve(*file, offset + count))
    file->contents.write(offset, bytes.first(count));
}

simulated_disk::sync_begun simulated_disk::begin_sync(int descriptor) const {
  const node* file = find(descriptor);
  if (file == nullptr)
    return {};
  return {descriptor, file->directory ? count_changes(name_of(descriptors_.at(descriptor).inode))
                                      : file->contents.changes()};
}

int simulated_disk::end_sync(const sync_begun& begun) {
  node* file = find(begun.descriptor);
  if (file == nullptr)
    return -EBADF;
  if (away_)
    return -EIO;
  if (file->directory) {
    if (random_.chance(faults_.sync))
      return -EIO;
    sync_names(name_of(descriptors_.at(begun.descriptor).inode), begun.changes);
    return 0;
  }
  if (std::exchange(file->sync_failed, false) || random_.chance(faults_.sync)) {
    file->contents.fail_sync(begun.changes, static_cast<survival>(random_.below(survivals)), random_);
    return -EIO;
  }
  file->contents.sync(begun.changes);
  return 0;
}

int simulated_disk::fsync(int descriptor) { return end_sync(begin_sync(descriptor)); }

uint64_t simulated_disk::free_bytes() const {
  uint64_t used = 0;
  for (const auto& [inode, file] : nodes_)
    used += file.allocated;
  return capacity_ - std::min(capacity_, used);
}

/// Allocates the file up to `end`. False: there is no space.
bool simulated_disk::reserve(node& file, uint64_t end) {
  uint64_t wanted = up_to_page(end);
  if (wanted <= file.allocated)
    return true;
  if (wanted - file.allocated > free_bytes() || random_.chance(faults_.space))
    return false;
  file.allocated = wanted;
  return true;
}

int simulated_disk::fallocate(int descriptor, uint64_t bytes) {
  node* file = find(descriptor);
  if (file == nullptr || file->directory)
    return -EBADF;
  if (away_)
    return -EIO;
  uint64_t before = file->contents.size();
  if (!reserve(*file, bytes)) {
    // A file system may have allocated a part before it found out.
    uint64_t most = std::max(before, std::min(bytes, file->allocated + free_bytes()));
    uint64_t end = random_.between(before, most);
    file->allocated = std::max(file->allocated, up_to_page(end));
    file->contents.resize(end);
    return -ENOSPC;
  }
  file->contents.resize(std::max(before, bytes));
  return 0;
}

int simulated_disk::ftruncate(int descriptor, uint64_t bytes) {
  node* file = find(descriptor);
  if (file == nullptr || file->directory)
    return -EBADF;
  if (away_)
    return -EIO;
  file->contents.resize(bytes);
  file->allocated = std::min(file->allocated, up_to_page(bytes));
  return 0;
}

int simulated_disk::fstat(int descriptor, file_facts& facts) const {
  const node* file = find(descriptor);
  if (file == nullptr)
    return -EBADF;
  facts = {descriptors_.at(descriptor).inode, file->contents.size(), file->allocated, file->directory};
  return 0;
}

int simulated_disk::stat(const std::string& path, file_facts& facts) const {
  if (int refused = look_up_parent(path); refused != 0)
    return refused;
  auto found = names_.find(path);
  if (found == names_.end())
    return -ENOENT;
  const node& file = nodes_.at(found->second);
  facts = {found->second, file.contents.size(), file.allocated, file.directory};
  return 0;
}

// ---- faults and the end ----

simulated_disk simulated_disk::snapshot(uint64_t seed) const {
  simulated_disk copy = *this;
  copy.random_ = seeded_random(seed);
  return copy;
}

void simulated_disk::vanish() {
  away_ = true;
  for (auto& [inode, file] : nodes_) {
    uint64_t changes = file.contents.changes();
    file.sync_failed = changes != 0;
    file.contents.fail_sync(changes, static_cast<survival>(random_.below(survivals)), random_);
  }
}

void simulated_disk::flip_bit(const std::string& path, uint64_t bit) {
  nodes_.at(names_.at(path)).contents.flip_bit(bit);
}

void simulated_disk::rot() {
  std::vector<simulated_file*> files;
  for (auto& [inode, file] : nodes_)
    if (file.contents.size() != 0)
      files.push_back(&file.contents);
  if (files.empty())
    return;
  simulated_file& file = *files[random_.below(files.size())];
  // Most of a file was never written, and stands for itself.
  auto bytes = file.bytes();
  auto from = static_cast<std::ptrdiff_t>(random_.below(bytes.size()));
  auto written =
      std::find_if(bytes.begin() + from, bytes.end(), [](std::byte one) { return one != std::byte{}; });
  if (written != bytes.end())
    file.flip_bit(static_cast<uint64_t>(written - bytes.begin()) * 8 + random_.below(8));
}

void simulated_disk::spoil(const std::string& path, uint64_t offset) {
  nodes_.at(names_.at(path)).unreadable.insert(offset / sector_bytes);
}

void simulated_disk::end_process() {
  descriptors_.clear();
  release_unused();
}

void simulated_disk::crash() { crash(static_cast<survival>(random_.below(survivals))); }

void simulated_disk::crash(survival how) {
  away_ = false;
  crash_names(how);
  for (auto& [inode, file] : nodes_) {
    file.contents.crash(how, random_);
    file.allocated = up_to_page(file.contents.size());
    file.sync_failed = false;
  }
  end_process();
}

} // namespace terrace::simulation
