#include "formats/hdf5/attribute.hpp"

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

// HDF5 has no empty strings, so a string is stored with one zero byte more.
Type text_type(std::size_t length) {
  constexpr auto task = "make the type of a text";
  auto type = Type(check(H5Tcopy(H5T_C_S1), task));
  check(H5Tset_size(type.get(), length + 1), task);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), task);
  return type;
}

void write(hid_t object, const std::string& name, const Type& type, const void* data) {
  const auto task = "write the attribute " + text::quote(name);
  const auto scalar = Space(check(H5Screate(H5S_SCALAR), task));
  const auto attribute =
      Attribute(check(H5Acreate2(object, name.c_str(), type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT), task));
  check(H5Awrite(attribute.get(), type.get(), data), task);
}

Type number_type(hid_t predefined) { return Type(check(H5Tcopy(predefined), "copy an HDF5 type")); }

void write_value(hid_t object, const std::string& name, std::int64_t value) {
  write(object, name, number_type(H5T_STD_I64LE), &value);
}
void write_value(hid_t object, const std::string& name, double value) {
  write(object, name, number_type(H5T_IEEE_F64LE), &value);
}
void write_value(hid_t object, const std::string& name, const std::string& value) {
  write(object, name, text_type(value.size()), value.c_str());
}

template <typename T>
T read_number(const Attribute& attribute, hid_t type, const std::string& task) {
  T value{};
  check(H5Aread(attribute.get(), type, &value), task);
  return value;
}

std::string read_text(const Attribute& attribute, const Type& type, const std::string& task) {
  std::string value(H5Tget_size(type.get()), '\0');
  check(H5Aread(attribute.get(), type.get(), value.data()), task);
  value.pop_back();
  return value;
}

bool is_scalar(const Attribute& attribute, const std::string& task) {
  const auto space = Space(check(H5Aget_space(attribute.get()), task));
  return H5Sget_simple_extent_type(space.get()) == H5S_SCALAR;
}

bool equal(const Type& type, hid_t predefined) { return H5Tequal(type.get(), predefined) > 0; }

bool is_fixed_text(const Type& type) {
  return H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0;
}

// Called by C code, so it must not throw.
herr_t keep_name(hid_t, const char* name, const H5A_info_t*, void* names) noexcept {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

}  // namespace

void write_attribute(hid_t object, const std::string& name, const SmallValue& value) {
  const Hdf5Lock lock;
  std::visit([&](const auto& plain) { write_value(object, name, plain); }, value);
}

SmallValue read_attribute(hid_t object, const std::string& name) {
  const Hdf5Lock lock;
  const auto task = "read the attribute " + text::quote(name);
  const auto attribute = Attribute(check(H5Aopen(object, name.c_str(), H5P_DEFAULT), task));
  const auto type = Type(check(H5Aget_type(attribute.get()), task));
  if (is_scalar(attribute, task)) {
    if (equal(type, H5T_STD_I64LE)) return read_number<std::int64_t>(attribute, H5T_STD_I64LE, task);
    if (equal(type, H5T_IEEE_F64LE)) return read_number<double>(attribute, H5T_IEEE_F64LE, task);
    if (is_fixed_text(type)) return read_text(attribute, type, task);
  }
  throw FileError(
      {.what = text::concat("Cannot ", task, ": it is neither int64 nor float64 nor a string of fixed length"),
       .why = "Hortator writes no others",
       .hint = "another program wrote or changed the file"});
}

bool has_attribute(hid_t object, const std::string& name) {
  const Hdf5Lock lock;
  return check(H5Aexists(object, name.c_str()), "look for the attribute " + text::quote(name)) > 0;
}

std::vector<std::string> attribute_names(hid_t object) {
  const Hdf5Lock lock;
  std::vector<std::string> names;
  check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &names), "list attributes");
  return names;
}

}  // namespace hortator::formats
