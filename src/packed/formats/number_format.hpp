#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/quantise.hpp>
#include <span>
#include <string>
#include <string_view>

namespace hortator::packed {

struct PackedLayout;
struct PackedBytes;

/// How the files of a format name and type what they store.
struct StoredFormat {
  const char* state = nullptr;  ///< the end of the name of its description; none: scales alone stand beside the weight
  at::ScalarType scale_type = at::kFloat;
  const float* values = nullptr;       ///< 16, which are stored as well
  bool is_of_bitsandbytes = false;     ///< which other programs read
  const char* bitsandbytes = nullptr;  ///< its switch in a model's configuration
};

/// A way to keep weights in fewer bits: its sizes, its values, its products and its files. One class for each
/// WeightFormat; a new one is a class, its value, and a row of formats().
class NumberFormat {
 public:
  NumberFormat() = default;
  virtual ~NumberFormat() = default;
  NumberFormat(const NumberFormat&) = delete;
  NumberFormat& operator=(const NumberFormat&) = delete;

  virtual const char* name() const = 0;
  /// A number takes a byte, else half of one.
  virtual bool has_bytes() const = 0;
  /// A scale belongs to a group of numbers, else to a row.
  virtual bool has_groups() const { return true; }
  /// Groups continue from one row to the next.
  virtual bool is_flat() const { return false; }
  /// Scales are numbers of 16 bits, which limits the sizes of weights.
  virtual bool has_half_scales() const { return false; }
  virtual StoredFormat stored() const = 0;

  /// Rounds a float32 matrix.
  virtual void pack(const PackedLayout& layout, const float* values, std::uint8_t* bytes) const = 0;
  virtual void unpack_row(const PackedLayout& layout, const PackedBytes& parts, std::int64_t row, float* to) const = 0;
  /// `x` [1 to 4, inputs] in float32 times the matrix, without unpacking it; undefined where this processor or the
  /// layout has no such product.
  virtual at::Tensor direct_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& bytes) const = 0;
};

const NumberFormat& format_of(WeightFormat format);

/// In the order of WeightFormat.
std::span<const NumberFormat* const> formats();

/// Each class of formats/, made once.
const NumberFormat& int8_format();
const NumberFormat& int4_format();
const NumberFormat& nf4_format();
const NumberFormat& int8_groups_format();

}  // namespace hortator::packed
