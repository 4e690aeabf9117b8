#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/text/read_keys.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::accelerator {

/// The entries of a DeepSpeed configuration by their paths ("zero_optimization.stage"). The functions that read an
/// entry return nothing if it is missing or "auto", and throw UsageError, naming file and entry, for an invalid value.
class DeepspeedEntries {
 public:
  DeepspeedEntries(const formats::JsonValue& root, std::string file) : file_(std::move(file)) { add(root, ""); }

  const std::string& file() const { return file_; }

  std::optional<double> number(const std::string& path);
  std::optional<std::int64_t> count(const std::string& path, std::int64_t min);
  std::optional<bool> onoff(const std::string& path);
  bool is_true(const std::string& path) const;       ///< whether the entry is the value true; does not count it as read
  bool is_automatic(const std::string& path) const;  ///< whether the entry is "auto"; does not count it as read
  std::string text(const std::string& path, const char* expected);  ///< empty if it is missing
  /// Returns the entry, null if it is missing or null, and counts it as read.
  const formats::JsonValue* take(const std::string& path);
  [[noreturn]] void refuse(const std::string& path, const formats::JsonValue& value, const char* expected) const;

  std::vector<std::string> unread() const { return read_.unread(values_); }  ///< their paths

 private:
  void add(const formats::JsonValue& value, const std::string& path);

  std::string file_;
  std::map<std::string, formats::JsonValue> values_;
  core::ReadKeys read_;
};

}  // namespace hortator::accelerator
