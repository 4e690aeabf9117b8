#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/range.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// Attributes of groups and datasets hold a file's small values. Strings are UTF-8 of fixed length.
using SmallValue = std::variant<std::int64_t, double, std::string>;

void write_attribute(hid_t object, const std::string& name, const SmallValue& value);

Space space_of(const TensorSpec& spec);

/// Creates datasets and attributes in a new file. In the order of their names this is several times faster, because
/// shared objects (groups, types, property lists) are created once. On a file that several ranks have open, all of them
/// make the same calls (@collective there).
class StructureWriter {
 public:
  explicit StructureWriter(const File& file);

  /// Creates a contiguous dataset, allocated but not written, and the groups in `name`. Types that HDF5 cannot
  /// distinguish get LibTorch's name as the attribute `torch_dtype`.
  StoredTensor add(const std::string& name, const TensorSpec& spec);
  /// Creates a virtual dataset of datasets in other files, by `mapping`.
  void add_virtual(const std::string& name, const TensorSpec& spec, const PropertyList& mapping);
  /// Writes an attribute of the group whose path is in `name`.
  void add(const std::string& name, const SmallValue& value);
  /// Writes an attribute of the dataset that was added last.
  void add_to_last(const std::string& attribute, const SmallValue& value);

 private:
  void create(const std::string& name, const TensorSpec& spec, const PropertyList& layout);
  const Group& group(const std::string& folder);
  const Type& type(at::ScalarType scalar);

  const File& file_;
  PropertyList groups_;
  PropertyList links_;
  PropertyList layout_;
  std::map<at::ScalarType, Type> types_;
  std::vector<std::pair<std::string, Group>> open_;  ///< groups on the path to the last one, with their full names
  std::vector<Dataset> last_;                        ///< at most one
};

/// A tensor whose elements are in datasets of its name in several files of one folder.
struct ViewedTensor {
  struct FileDataset {
    std::string file = "";
    TensorSpec spec = {};  ///< of the dataset in that file
    core::Range elements = {};
  };

  std::string name = "";
  TensorSpec spec = {};
  std::vector<FileDataset> parts = {};
};

/// Creates a file in the same folder with a virtual dataset for each of them. It holds no elements itself.
void write_view(const std::filesystem::path& path, const std::vector<ViewedTensor>& tensors);

}  // namespace hortator::formats
