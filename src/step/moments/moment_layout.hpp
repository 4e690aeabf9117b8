#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/range.hpp"

/// How the tensors of an optimizer's state lie over the slices of a parameter, by their names (named_optimizer.hpp).
namespace hortator::step {

enum class MomentLayout {
  elements,  ///< of the parameter's shape and type
  bytes,     ///< of its shape, a byte for each element
  blocks,    ///< a number for each moment_block elements
  whole      ///< of any shape, in full on every rank
};

constexpr std::int64_t moment_block = 64;

/// By a moment's name.
MomentLayout moment_layout(std::string_view moment);
constexpr std::int64_t blocks_of(std::int64_t elements) { return core::ceil_div(elements, moment_block); }
/// The range of a moment's elements that belongs to a range of the parameter's, which begins at a multiple of
/// moment_block. Not for whole ones.
core::Range moment_range(MomentLayout layout, core::Range parameter);

/// A path "state/<parameter>/<moment>" in its two parts. A moment's name may have one of the prefixes.
struct MomentPath {
  std::string parameter;  ///< "state/<parameter>"
  std::string moment;
};
MomentPath split_moment_path(std::string_view path);

}  // namespace hortator::step
