#include "formats/hdf5/group.hpp"

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

std::string name_of_child(hid_t group, hsize_t index) {
  constexpr auto task = "list a group";
  const auto name = [&](char* buffer, std::size_t size) {
    return check(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, buffer, size, H5P_DEFAULT), task);
  };
  std::string result(static_cast<std::size_t>(name(nullptr, 0)), '\0');
  name(result.data(), result.size() + 1);
  return result;
}

void require_hard_link(hid_t group, const std::string& name) {
  H5L_info_t link;
  check(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), "look at the link " + text::quote(name));
  if (link.type == H5L_TYPE_HARD) return;
  throw FileError({.what = "The file has a soft or external link " + text::quote(name),
                   .why = "Hortator does not write such links"});
}

}  // namespace

Group root_group(const File& file) {
  const Hdf5Lock lock;
  return Group(check(H5Gopen2(file.get(), "/", H5P_DEFAULT), "open the root group"));
}

std::variant<Group, Dataset> open_object(const Group& group, const std::string& name) {
  const Hdf5Lock lock;
  const hid_t id = check(H5Oopen(group.get(), name.c_str(), H5P_DEFAULT), "open " + text::quote(name));
  if (H5Iget_type(id) == H5I_GROUP) return Group(id);
  if (H5Iget_type(id) == H5I_DATASET) return Dataset(id);
  const Object other(id);
  throw FileError(
      {.what = text::quote(name) + " is neither a group nor a dataset", .why = "Hortator writes nothing else"});
}

std::vector<std::string> children(const Group& group) {
  const Hdf5Lock lock;
  H5G_info_t info;
  check(H5Gget_info(group.get(), &info), "count a group's members");
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    names.push_back(name_of_child(group.get(), i));
    require_hard_link(group.get(), names.back());
  }
  return names;
}

}  // namespace hortator::formats
