#pragma once

#include "models/chat/value.hpp"

namespace hortator::models::chat {

/// The filter `tojson`, with the arguments that transformers gives it: ensure_ascii, indent, separators, sort_keys.
Value to_json(const Value& value, const CallArguments& arguments);

}  // namespace hortator::models::chat
