#pragma once

#include <hdf5.h>

#include <cstdint>
#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "core/text/text.hpp"
#include "formats/hdf5/structure.hpp"

/// Reading of attributes, which only tests do.
namespace hortator::formats {

template <typename T>
T read_number(const Attribute& attribute, hid_t type, const std::string& task) {
  T value{};
  check(H5Aread(attribute.get(), type, &value), task);
  return value;
}

inline std::string read_text(const Attribute& attribute, const Type& type, const std::string& task) {
  std::string value(H5Tget_size(type.get()), '\0');
  check(H5Aread(attribute.get(), type.get(), value.data()), task);
  value.pop_back();
  return value;
}

inline bool is_scalar(const Attribute& attribute, const std::string& task) {
  const auto space = Space(check(H5Aget_space(attribute.get()), task));
  return H5Sget_simple_extent_type(space.get()) == H5S_SCALAR;
}

inline bool equal(const Type& type, hid_t predefined) { return H5Tequal(type.get(), predefined) > 0; }

inline bool is_fixed_text(const Type& type) {
  return H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0;
}

// Called by C code, so it must not throw.
inline herr_t keep_name(hid_t, const char* name, const H5A_info_t*, void* names) noexcept {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

inline SmallValue read_attribute(hid_t object, const std::string& name) {
  const Hdf5Lock lock;
  const auto task = "read the attribute " + text::quote(name);
  const auto attribute = Attribute(check(H5Aopen(object, name.c_str(), H5P_DEFAULT), task));
  const auto type = Type(check(H5Aget_type(attribute.get()), task));
  if (is_scalar(attribute, task)) {
    if (equal(type, H5T_STD_I64LE)) return read_number<std::int64_t>(attribute, H5T_STD_I64LE, task);
    if (equal(type, H5T_IEEE_F64LE)) return read_number<double>(attribute, H5T_IEEE_F64LE, task);
    if (is_fixed_text(type)) return read_text(attribute, type, task);
  }
  throw Error({.what = "Cannot " + task + ": it is neither int64 nor float64 nor a string of fixed length"});
}

inline bool has_attribute(hid_t object, const std::string& name) {
  const Hdf5Lock lock;
  return check(H5Aexists(object, name.c_str()), "look for the attribute " + text::quote(name)) > 0;
}

inline std::vector<std::string> attribute_names(hid_t object) {
  const Hdf5Lock lock;
  std::vector<std::string> names;
  check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &names), "list attributes");
  return names;
}

}  // namespace hortator::formats
