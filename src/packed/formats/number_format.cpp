#include "packed/formats/number_format.hpp"

#include <array>

namespace hortator::packed {

std::span<const NumberFormat* const> formats() {
  static const std::array<const NumberFormat*, 4> all = {&int8_format(), &int4_format(), &nf4_format(),
                                                         &int8_groups_format()};
  return all;
}

const NumberFormat& format_of(WeightFormat format) { return *formats()[static_cast<std::size_t>(format)]; }

}  // namespace hortator::packed
