#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/read_keys.hpp"

namespace hortator::models {

/// The fields of a config.json, or of an object in it. A field that is null counts as absent. A model reads every field
/// that changes its results; require_all_used() then refuses those that nothing has read. Errors name file and field.
class ConfigFields {
 public:
  /// `path` is of the object within the file: "rope_parameters.".
  ConfigFields(nlohmann::ordered_json object, std::string file, std::string path);
  /// Reads the file. Throws FileError if it does not hold an object of reasonable size.
  static ConfigFields read(const std::filesystem::path& path);

  std::string dump() const { return object_.dump(2) + "\n"; }
  const std::string& file() const { return file_; }
  bool empty() const { return object_.empty(); }
  bool has(const std::string& name) const;  ///< and it is not null
  bool is_object(const std::string& name) const { return has(name) && object_.at(name).is_object(); }
  bool is_absent(const std::string& name) const { return !object_.contains(name); }  ///< and not null either

  // Each marks the field as used. Without a default, an absent field is an error.
  std::int64_t integer(const std::string& name) const;  ///< from 1 to 2147483647
  std::int64_t integer(const std::string& name, std::int64_t absent) const;
  std::optional<std::int64_t> optional_integer(const std::string& name) const;
  std::int64_t dimension(const std::string& name) const;  ///< of weights: from 1 to 2^28
  std::int64_t dimension(const std::string& name, std::int64_t absent) const;
  std::vector<std::int64_t> dimensions(const std::string& name) const;  ///< one number counts as a list
  std::optional<std::int64_t> token(const std::string& name) const;     ///< any whole number
  std::int64_t layers(const std::string& name) const;                   ///< a number of layers: from 1 to 4096
  double number(const std::string& name) const;
  double number(const std::string& name, double absent) const;
  bool flag(const std::string& name, bool absent) const;
  std::string text(const std::string& name, const std::string& absent) const;
  std::vector<std::int64_t> integers(const std::string& name) const;  ///< one number counts as a list
  std::vector<std::string> texts(const std::string& name) const;
  ConfigFields object(const std::string& name) const;  ///< empty if absent
  std::vector<ConfigFields> objects(const std::string& name) const;
  std::vector<std::string> names() const;  ///< of all fields
  /// A list of a string and a whole number.
  std::pair<std::string, std::int64_t> token_pair(const std::string& name) const;
  double probability(const std::string& name, double absent) const;
  /// Outputs of a classification head: num_labels, or as many as id2label has, or 2.
  std::int64_t num_labels() const;

  /// The two largest dimensions that were read: "'vocab_size' is 50257, 'n_embd' is 768".
  std::string largest_dimensions() const;

  void skip(const std::string& name) const;  ///< a field that changes nothing
  /// Throws if the field has another value: other values are not supported.
  void require_value(const std::string& name, const nlohmann::json& value) const;
  void require_one_of(const std::string& name, const std::string& value, const std::vector<std::string>& known) const;
  void require(bool holds, const std::string& name, std::string_view expected) const;
  /// Throws if there are fields that no one has read and that are not known to change nothing.
  void require_all_used() const;

  /// The same fields with one replaced, or removed by null.
  ConfigFields with(const std::string& name, const nlohmann::json& value) const;

 private:
  const nlohmann::ordered_json* find(const std::string& name) const;
  const nlohmann::ordered_json& get(const std::string& name) const;
  [[noreturn]] void refuse(const std::string& name, std::string_view expected) const;
  std::string shown(const std::string& name) const;

  nlohmann::ordered_json object_;
  std::string file_;
  std::string path_;
  std::shared_ptr<std::map<std::string, std::int64_t>> dimensions_ =
      std::make_shared<std::map<std::string, std::int64_t>>();
  std::shared_ptr<core::ReadKeys> used_ = std::make_shared<core::ReadKeys>();
};

}  // namespace hortator::models
