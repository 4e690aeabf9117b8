#pragma once

#include <filesystem>
#include <hortator/tracker.hpp>
#include <string>

#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator::observe {

/// A service whose own command takes files that Hortator writes.
struct SyncedService {
  const char* name;
  /// The command for the run of this name whose files are in this folder.
  std::string (*command)(const std::filesystem::path& folder, const std::string& run);
};

/// Writes the files of `Files` into a folder with the service's name in the logging folder. At the end the log says
/// which command gives them to the service.
template <typename Files>
class SyncedTracker final : public Files {
 public:
  explicit SyncedTracker(const SyncedService& service) : service_(service) {}

  std::string name() const override { return service_.name; }
  void start(const TrackerStart& start) override {
    auto own = start;
    own.folder /= service_.name;
    run_ = own.name;
    folder_ = own.folder;
    Files::start(own);
  }
  void finish() override {
    Files::finish();
    if (!run_.empty() && std::filesystem::exists(folder_))
      log::info(service_.name, ": ", service_.command(std::filesystem::absolute(folder_), run_));
    run_.clear();
  }

 private:
  const SyncedService& service_;
  std::string run_;  ///< empty unless it runs
  std::filesystem::path folder_;
};

}  // namespace hortator::observe
