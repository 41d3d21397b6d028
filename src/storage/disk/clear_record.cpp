#include "storage/disk/clear_record.hpp"

#include "storage/pending_clears.hpp"

#include <filesystem>

namespace terrace {

bool still_needed(const pending_clear& clear, disk_phase now) {
  return clear.volume != volume_id{} || (now != disk_phase::starting && now != disk_phase::ready);
}

remember_clear_answer remember_clear(const std::string& state_directory, std::vector<std::string> files,
                                     const pending_clear& clear, const std::function<disk_phase()>& phase) {
  if (phase() == disk_phase::off)
    std::erase_if(files, [](const std::string& file) {
      std::error_code failed;
      return !std::filesystem::exists(file, failed) && !failed;
    });
  auto done =
      pending_clears(state_directory).remember(files, clear, [&] { return still_needed(clear, phase()); });
  if (done)
    return {};
  if (done.error().code == errc::busy)
    return {{errc::busy, files.front() + " is being opened and cannot be cleared yet; try again"}};
  return {{errc::internal, "host memory is cleared, but " + files.front() +
                               " could not be reached, and the clear could not be recorded for it (" +
                               done.error().text +
                               "): cleared objects may be served again once the file can be opened"}};
}

} // namespace terrace
