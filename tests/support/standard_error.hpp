#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace hortator::test {

/// What this process writes to standard error meanwhile.
class StandardError {
 public:
  StandardError() : file_(std::tmpfile()), kept_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
  ~StandardError() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
    std::fclose(file_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  std::string text() const {
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all += static_cast<char>(c);
    return all;
  }

 private:
  std::FILE* file_;
  int kept_;
};

}  // namespace hortator::test
