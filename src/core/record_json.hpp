#pragma once

#include <nlohmann/json.hpp>

#include "core/text/foreign_text.hpp"

namespace hortator::core {

/// A record as JSON; discarded (no object, no array, no value) where it is none, or too large or deep to be one.
template <typename Json = nlohmann::json>
Json parse_record(std::string_view text) {
  if (text.size() > max_record_bytes || !is_shallow(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace hortator::core
