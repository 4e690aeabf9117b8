#include "formats/hdf5/type.hpp"

#include <array>
#include <bit>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files hold little-endian numbers, written as they lie in memory");

Type copy(hid_t predefined) { return Type(check(H5Tcopy(predefined), "copy an HDF5 type")); }

/// A float of sign, exponent and mantissa bits, from the highest bit down, without gaps.
Type small_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  constexpr auto task = "make a small HDF5 float";
  auto type = copy(H5T_IEEE_F32LE);
  const auto sign_position = exponent_bits + mantissa_bits;
  check(H5Tset_fields(type.get(), sign_position, mantissa_bits, exponent_bits, 0, mantissa_bits), task);
  check(H5Tset_size(type.get(), (sign_position + 1) / 8), task);
  check(H5Tset_ebias(type.get(), bias), task);
  return type;
}

Type boolean() {
  auto type = Type(check(H5Tenum_create(H5T_STD_I8LE), "make the HDF5 type of bool"));
  const std::int8_t no = 0;
  const std::int8_t yes = 1;
  check(H5Tenum_insert(type.get(), "FALSE", &no), "make the HDF5 type of bool");
  check(H5Tenum_insert(type.get(), "TRUE", &yes), "make the HDF5 type of bool");
  return type;
}

Type complex_of(const Type& part) {
  const auto size = H5Tget_size(part.get());
  auto type = Type(check(H5Tcreate(H5T_COMPOUND, 2 * size), "make a complex HDF5 type"));
  check(H5Tinsert(type.get(), "r", 0, part.get()), "make a complex HDF5 type");
  check(H5Tinsert(type.get(), "i", size, part.get()), "make a complex HDF5 type");
  return type;
}

struct KnownType {
  at::ScalarType type;
  std::string_view name;
  Type (*make)();
};

// H5T_... are function calls, so the types are created on request.
constexpr std::array known_types = {
    KnownType{at::kBool, "bool", [] { return boolean(); }},
    KnownType{at::kByte, "uint8", [] { return copy(H5T_STD_U8LE); }},
    KnownType{at::kChar, "int8", [] { return copy(H5T_STD_I8LE); }},
    KnownType{at::kUInt16, "uint16", [] { return copy(H5T_STD_U16LE); }},
    KnownType{at::kShort, "int16", [] { return copy(H5T_STD_I16LE); }},
    KnownType{at::kUInt32, "uint32", [] { return copy(H5T_STD_U32LE); }},
    KnownType{at::kInt, "int32", [] { return copy(H5T_STD_I32LE); }},
    KnownType{at::kUInt64, "uint64", [] { return copy(H5T_STD_U64LE); }},
    KnownType{at::kLong, "int64", [] { return copy(H5T_STD_I64LE); }},
    KnownType{at::kFloat8_e5m2, "float8_e5m2", [] { return small_float(5, 2, 15); }},
    KnownType{at::kFloat8_e4m3fn, "float8_e4m3fn", [] { return small_float(4, 3, 7); }},
    KnownType{at::kFloat8_e5m2fnuz, "float8_e5m2fnuz", [] { return small_float(5, 2, 16); }},
    KnownType{at::kFloat8_e4m3fnuz, "float8_e4m3fnuz", [] { return small_float(4, 3, 8); }},
    KnownType{at::kHalf, "float16", [] { return small_float(5, 10, 15); }},
    KnownType{at::kBFloat16, "bfloat16", [] { return small_float(8, 7, 127); }},
    KnownType{at::kFloat, "float32", [] { return copy(H5T_IEEE_F32LE); }},
    KnownType{at::kDouble, "float64", [] { return copy(H5T_IEEE_F64LE); }},
    KnownType{at::kComplexHalf, "complex32", [] { return complex_of(small_float(5, 10, 15)); }},
    KnownType{at::kComplexFloat, "complex64", [] { return complex_of(copy(H5T_IEEE_F32LE)); }},
    KnownType{at::kComplexDouble, "complex128", [] { return complex_of(copy(H5T_IEEE_F64LE)); }},
};

const KnownType* find(at::ScalarType type) {
  for (const auto& known : known_types) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

}  // namespace

std::string_view type_name(at::ScalarType type) {
  const auto* known = find(type);
  return known != nullptr ? known->name : "";
}

std::optional<at::ScalarType> type_named(std::string_view name) {
  for (const auto& known : known_types) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

Type file_type(at::ScalarType type) {
  const Hdf5Lock lock;
  if (const auto* known = find(type)) return known->make();
  throw UsageError({.what = text::concat("Tensors of type ", c10::toString(type), " cannot be saved"),
                    .why = "no HDF5 type can hold their values",
                    .hint = "convert them before saving"});
}

std::optional<at::ScalarType> scalar_type(const Type& stored) {
  const Hdf5Lock lock;
  for (const auto& known : known_types) {
    if (check(H5Tequal(stored.get(), known.make().get()), "compare HDF5 types") > 0) return known.type;
  }
  return std::nullopt;
}

}  // namespace hortator::formats
