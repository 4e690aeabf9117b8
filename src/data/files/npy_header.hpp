#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::data {

/// Why a file is no .npy array that can be read.
class NpyFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What every .npy file begins with, as many bytes of it as are there: how long it is up to the array's first byte.
inline constexpr std::size_t npy_beginning_bytes = 12;
std::uint64_t npy_data_offset(std::span<const std::uint8_t> beginning);

/// The array's type and shape, by the text that describes them. Throws NpyFault for Fortran order, big-endian numbers,
/// texts, records and objects.
formats::TensorSpec parse_npy_header(std::string_view text);

}  // namespace hortator::data
