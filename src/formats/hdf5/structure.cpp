#include "formats/hdf5/structure.hpp"

#include "core/text/text.hpp"
#include "formats/hdf5/group.hpp"
#include "formats/hdf5/type.hpp"

namespace hortator::formats {
namespace {

PropertyList group_list() {
  const Hdf5Lock lock;
  auto list = PropertyList(check(H5Pcreate(H5P_GROUP_CREATE), "make a group creation list"));
  check(H5Pset_obj_track_times(list.get(), false), "leave times out");  // so that equal states give equal files
  return list;
}

PropertyList link_list() {
  const Hdf5Lock lock;
  constexpr auto task = "make a link creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_LINK_CREATE), task));
  check(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), task);
  return list;
}

PropertyList layout_list() {
  const Hdf5Lock lock;
  constexpr auto task = "make a dataset creation list";
  auto list = PropertyList(check(H5Pcreate(H5P_DATASET_CREATE), task));
  check(H5Pset_layout(list.get(), H5D_CONTIGUOUS), task);
  check(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), task);
  check(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), task);
  check(H5Pset_obj_track_times(list.get(), false), task);
  return list;
}

bool speaks_for_itself(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || at::isIntegralType(type, /*includeBool=*/false);
}

}  // namespace

Space space_of(const TensorSpec& spec) {
  if (spec.shape.empty()) return Space(check(H5Screate(H5S_SCALAR), "make a scalar space"));
  const std::vector<hsize_t> sizes(spec.shape.begin(), spec.shape.end());
  return Space(check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "make a space"));
}

StructureWriter::StructureWriter(const File& file)
    : file_(file), groups_(group_list()), links_(link_list()), layout_(layout_list()) {}

const Type& StructureWriter::type(at::ScalarType scalar) {
  const auto known = types_.find(scalar);
  return known != types_.end() ? known->second : types_.emplace(scalar, file_type(scalar)).first->second;
}

const Group& StructureWriter::group(const std::string& folder) {
  const auto holds = [&](const std::string& path) {
    return path.empty() || folder == path || folder.starts_with(path + "/");
  };
  if (open_.empty()) open_.emplace_back("", root_group(file_));
  while (!holds(open_.back().first)) open_.pop_back();
  while (open_.back().first != folder) {
    const auto& [path, parent] = open_.back();
    const auto begin = path.empty() ? 0 : path.size() + 1;
    const auto next = folder.substr(0, folder.find('/', begin));
    const auto name = next.substr(begin);
    const auto task = "make the group " + text::quote(next);
    const bool exists = check(H5Lexists(parent.get(), name.c_str(), H5P_DEFAULT), task) > 0;
    const auto id = exists ? H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT)
                           : H5Gcreate2(parent.get(), name.c_str(), links_.get(), groups_.get(), H5P_DEFAULT);
    open_.emplace_back(next, Group(check(id, task)));
  }
  return open_.back().second;
}

void StructureWriter::create(const std::string& name, const TensorSpec& spec, const PropertyList& layout) {
  const auto place = place_of(name);
  const auto space = space_of(spec);
  last_.clear();
  last_.emplace_back(check(H5Dcreate2(group(place.folder).get(), place.name.c_str(), type(spec.type).get(), space.get(),
                                      links_.get(), layout.get(), H5P_DEFAULT),
                           "create the dataset " + text::quote(name)));
  if (!speaks_for_itself(spec.type)) add_to_last("torch_dtype", std::string(type_name(spec.type)));
}

StoredTensor StructureWriter::add(const std::string& name, const TensorSpec& spec) {
  const Hdf5Lock lock;
  create(name, spec, layout_);
  if (spec.elements() == 0) return {.spec = spec};
  const auto offset = H5Dget_offset(last_.back().get());
  if (offset == HADDR_UNDEF)
    throw_hdf5_error("place the dataset " + text::quote(name), std::source_location::current());
  return {.spec = spec, .offset = static_cast<std::int64_t>(offset)};
}

void StructureWriter::add_virtual(const std::string& name, const TensorSpec& spec, const PropertyList& mapping) {
  const Hdf5Lock lock;
  create(name, spec, mapping);
}

void StructureWriter::add(const std::string& name, const SmallValue& value) {
  const Hdf5Lock lock;
  const auto place = place_of(name);
  write_attribute(group(place.folder).get(), place.name, value);
}

void StructureWriter::add_to_last(const std::string& attribute, const SmallValue& value) {
  write_attribute(last_.back().get(), attribute, value);
}

}  // namespace hortator::formats
