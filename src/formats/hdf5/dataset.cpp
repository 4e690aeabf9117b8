#include "formats/hdf5/dataset.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/tensor/stored_rows.hpp"
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
  const auto* found = std::ranges::find(known_types, type, &KnownType::type);
  return found != known_types.end() ? found : nullptr;
}

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw FileError({.what = text::concat("The dataset ", text::quote(name), " ", problem),
                   .why = "Hortator does not write such datasets",
                   .hint = "the file is damaged, or another program wrote or changed it"});
}

std::vector<std::int64_t> shape_of(const Dataset& dataset, const std::string& name) {
  const auto task = "read the shape of " + text::quote(name);
  const auto space = Space(check(H5Dget_space(dataset.get()), task));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) refuse(name, "has no shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(check(H5Sget_simple_extent_ndims(space.get()), task)));
  check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), task);
  return {sizes.begin(), sizes.end()};
}

at::ScalarType type_of(const Dataset& dataset, const std::string& name) {
  const auto stored = Type(check(H5Dget_type(dataset.get()), "read the type of " + text::quote(name)));
  const auto type = scalar_type(stored);
  if (!type) refuse(name, "has a type that tensors do not have");
  return *type;
}

bool is_contiguous(const Dataset& dataset) {
  const auto list = PropertyList(check(H5Dget_create_plist(dataset.get()), "read a dataset's layout"));
  return H5Pget_layout(list.get()) == H5D_CONTIGUOUS && H5Pget_external_count(list.get()) == 0;
}

}  // namespace

std::string_view type_name(at::ScalarType type) {
  const auto* known = find(type);
  return known != nullptr ? known->name : "";
}

std::optional<at::ScalarType> type_named(std::string_view name) {
  const auto* found = std::ranges::find(known_types, name, &KnownType::name);
  return found != known_types.end() ? std::optional(found->type) : std::nullopt;
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

Dataset open_dataset(const File& file, const std::string& name) {
  const Hdf5Lock lock;
  return Dataset(check(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), "open the dataset " + text::quote(name)));
}

StoredTensor inspect_dataset(const Dataset& dataset, const std::string& name, std::uint64_t file_bytes) {
  const Hdf5Lock lock;
  StoredTensor stored = {.spec = {.type = type_of(dataset, name), .shape = shape_of(dataset, name)}};
  if (!is_contiguous(dataset)) refuse(name, "is not contiguous in the file");
  const std::uint64_t bytes = H5Dget_storage_size(dataset.get());
  if (byte_count(stored.spec) != static_cast<std::int64_t>(bytes))
    refuse(name, "takes another number of bytes than its shape says");
  if (bytes == 0) return stored;
  const std::uint64_t offset = H5Dget_offset(dataset.get());
  if (offset > file_bytes || bytes > file_bytes - offset) refuse(name, "reaches beyond the end of the file");
  stored.offset = static_cast<std::int64_t>(offset);
  return stored;
}

}  // namespace hortator::formats
