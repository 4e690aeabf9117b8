#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace hortator::test {

/// Captures what this process writes to a descriptor (STDOUT_FILENO, STDERR_FILENO) in this scope.
class Written {
 public:
  explicit Written(int descriptor) : descriptor_(descriptor), file_(std::tmpfile()) {
    std::fflush(nullptr);
    kept_ = ::dup(descriptor_);
    ::dup2(::fileno(file_), descriptor_);
  }
  ~Written() {
    std::fflush(nullptr);
    ::dup2(kept_, descriptor_);
    ::close(kept_);
    std::fclose(file_);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  std::string text() const {
    std::fflush(nullptr);
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all += static_cast<char>(c);
    return all;
  }

 private:
  int descriptor_;
  std::FILE* file_;
  int kept_ = -1;
};

/// Returns what `work` writes to the descriptor.
template <typename Work>
std::string written_to(int descriptor, const Work& work) {
  const Written written(descriptor);
  work();
  return written.text();
}

}  // namespace hortator::test
