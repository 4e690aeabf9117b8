#pragma once

#include <optional>
#include <string>

#include "exported/graph/program.hpp"

namespace hortator::exported {

/// The first node that mixes tokens, or counts them, in a way that a sequence divided over ranks
/// (maybe_context_parallel) does not allow: it would see a rank's own tokens only. Nothing if there is none;
/// scaled_dot_product_attention is intercepted.
std::optional<std::string> node_on_own_tokens(const Graph& graph);

}  // namespace hortator::exported
