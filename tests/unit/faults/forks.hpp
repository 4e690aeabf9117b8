#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "support/faults/faults.hpp"

/// Runs work in a fork of this process, so that it can be killed. Its files are in a separate folder.
namespace hortator::test {

/// A folder whose name no other path contains.
inline std::filesystem::path fresh_folder() {
  const auto root = std::filesystem::absolute("faulty_disk");
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  return root;
}

inline constexpr int killed = 256;

// The result of `work` in a fork of this process; `killed` if the fork did not end normally.
inline int in_fork(const std::function<int()>& work) {
  const auto child = fork();
  if (child == 0) {
    int code = 255;
    try {
      code = work();
    } catch (...) {
      code = 254;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : killed;
}

inline long count_calls(const std::filesystem::path& root, const std::function<void()>& work) {
  return in_fork([&] {
    faults::arm(root.string(), {});
    work();
    return static_cast<int>(faults::disarm());
  });
}

}  // namespace hortator::test
