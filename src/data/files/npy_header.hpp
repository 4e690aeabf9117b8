#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::data {

/// Why a file cannot be read as an .npy array.
class NpyFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t npy_beginning_bytes = 12;
/// The offset of the array's first byte, from the first npy_beginning_bytes bytes of a file, or fewer if the file is
/// shorter. Throws NpyFault.
std::uint64_t npy_data_offset(std::span<const std::uint8_t> beginning);

/// The array's type and shape, from the header's text. Throws NpyFault for Fortran order, big-endian numbers, strings,
/// records and objects.
formats::TensorSpec parse_npy_header(std::string_view text);

}  // namespace hortator::data
