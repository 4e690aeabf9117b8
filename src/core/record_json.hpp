#pragma once

#include <nlohmann/json.hpp>

#include "core/text/foreign_text.hpp"

namespace hortator::core {

/// Parses a record. The result is discarded (is_discarded(); no object, array or value) for invalid JSON and for text
/// that is too large or too deeply nested.
template <typename Json = nlohmann::json>
Json parse_record(std::string_view text) {
  if (text.size() > max_record_bytes || !is_shallow(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace hortator::core
