#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
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

}  // namespace hortator::observe
