#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors/strict_json.hpp"

namespace hortator::accelerator {

/// The entries of a DeepSpeed configuration by their paths ("zero_optimization.stage"), sections taken apart. Reading
/// one gives nothing where it is not there or "auto", and a UsageError that names file and entry for what it cannot be.
class DeepspeedEntries {
 public:
  DeepspeedEntries(const formats::JsonValue& root, std::string file) : file_(std::move(file)) { add(root, ""); }

  const std::string& file() const { return file_; }

  std::optional<double> number(const std::string& path);
  std::optional<std::int64_t> count(const std::string& path, std::int64_t least);
  std::optional<bool> onoff(const std::string& path);
  std::string words(const std::string& path, const char* expected);  ///< empty where it is not there
  /// Null where it is not there; it counts as read.
  const formats::JsonValue* take(const std::string& path);
  [[noreturn]] void refuse(const std::string& path, const formats::JsonValue& value, const char* expected) const;

  std::vector<std::string> rest() const;  ///< those that nobody has read

 private:
  void add(const formats::JsonValue& value, const std::string& path);

  std::string file_;
  std::map<std::string, formats::JsonValue> values_;
  std::vector<std::string> read_;
};

}  // namespace hortator::accelerator
