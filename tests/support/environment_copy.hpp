#pragma once

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

namespace hortator::test {

// The environment variables as they were when it was constructed.
class EnvironmentCopy {
 public:
  EnvironmentCopy() : variables_(now()) {}

  // Unsets what is new, and sets what has changed or is missing.
  void restore() const {
    for (const auto& [name, value] : now()) {
      if (variables_.count(name) == 0) unsetenv(name.c_str());
    }
    for (const auto& [name, value] : variables_) {
      const char* current = std::getenv(name.c_str());
      if (current == nullptr || value != current) setenv(name.c_str(), value.c_str(), 1);
    }
  }

 private:
  static std::map<std::string, std::string> now() {
    std::map<std::string, std::string> found;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const auto end = text.find('=');
      if (end != std::string::npos) found[text.substr(0, end)] = text.substr(end + 1);
    }
    return found;
  }

  std::map<std::string, std::string> variables_;
};

}  // namespace hortator::test
