#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors/strict_json.hpp"

namespace hortator::exported {

/// A value of a JSON text with its position, which messages name: "graph_module.graph.nodes[3].target". The text's
/// value must outlive it. All functions throw ExportFault for a value of another type.
class Field {
 public:
  explicit Field(const formats::JsonValue& value, std::string position = "")
      : value_(value), position_(std::move(position)) {}

  bool is_null() const;
  bool has(std::string_view name) const;                       ///< a member that is not null
  Field at(std::string_view name) const;                       ///< throws if the object has no such member
  std::vector<Field> items() const;                            ///< of a list
  std::vector<std::pair<std::string, Field>> members() const;  ///< of an object
  /// The one member that is set, of an object that stands for one of several types.
  std::pair<std::string, Field> choice() const;

  std::int64_t integer() const;
  double real() const;  ///< also "Infinity", "-Infinity" and "NaN", as the exporter writes them
  bool flag() const;
  const std::string& text() const;

  const std::string& position() const { return position_; }
  [[noreturn]] void refuse(std::string_view why) const;                ///< the file is damaged
  [[noreturn]] void refuse_feature(const std::string& feature) const;  ///< "... is not supported"

 private:
  const formats::JsonValue* find(std::string_view name) const;
  std::string below(std::string_view name) const;

  const formats::JsonValue& value_;
  std::string position_;
};

}  // namespace hortator::exported
