#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <hortator/tracker.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hortator::observe {

/// A file that is only appended to; readers see new bytes at most a tenth of a second later. Throws Error when writing
/// fails.
class LogFile {
 public:
  /// Creates the folder if it does not exist.
  explicit LogFile(std::filesystem::path path);

  void append(std::string_view bytes);
  void flush();         ///< makes everything visible to readers
  void make_durable();  ///< also survives a crash of the machine

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point flushed_;
};

/// What trackers that write one file have in common. The file is opened only at the first record: until then the run
/// may still resume from a checkpoint.
class FileTracker : public Tracker {
 public:
  void start(const TrackerStart& start) override { start_ = start; }
  void rewind(std::int64_t last_step) override;
  void flush() override;
  void finish() override { file_.reset(); }

 protected:
  TrackerStart start_;
  std::unique_ptr<LogFile> file_;
};

/// The content of a log; empty if there is none. Throws Error when it cannot be read.
std::string content_of(const std::filesystem::path& file);

/// Replaces the content of a log by what is written to `aside` first. Throws Error when it cannot be written.
void replace_log(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content);

/// Returns the step of a row; nothing for a row that cannot be read.
using StepOf = std::function<std::optional<std::int64_t>(std::string_view row)>;

enum class FirstRow { data, heading };

/// Removes the rows of steps after `last_step`, unreadable rows and an unfinished last row. A heading stays. Throws
/// Error when the file cannot be read or written.
void cut_rows(const std::filesystem::path& file, FirstRow first, const StepOf& step_of, std::int64_t last_step);

/// For a run that starts from scratch: renames the file to FILE.old, replacing an earlier one.
void put_aside(const std::filesystem::path& file);

}  // namespace hortator::observe
