#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace hortator::observe {

/// A file that grows at its end, seen by readers at most a tenth of a second later. Errors throw.
class LogFile {
 public:
  /// Its folder is made if need be.
  explicit LogFile(std::filesystem::path path);

  void append(std::string_view bytes);
  void flush();         ///< readers see it all
  void make_durable();  ///< and it outlives the machine

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace hortator::observe
