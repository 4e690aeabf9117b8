#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5/attribute.hpp"
#include "formats/hdf5/dataset.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

Space space_of(const TensorSpec& spec);

/// Puts many datasets and values into a new file. In the order of their names it is several times faster than one by
/// one: what they share (groups, types, property lists) is made once. On a file that is open on several ranks all of
/// them make the same calls. @collective there
class StructureWriter {
 public:
  explicit StructureWriter(const File& file);

  /// A contiguous dataset with its space taken at once and nothing written into it. Groups in `name` are made. Types
  /// that HDF5's words do not tell apart get torch's name as the attribute `torch_dtype`.
  StoredTensor add(const std::string& name, const TensorSpec& spec);
  /// A dataset that shows those of other files, as `mapping` says.
  void add_virtual(const std::string& name, const TensorSpec& spec, const PropertyList& mapping);
  /// An attribute of the group that is the path in `name`.
  void add(const std::string& name, const SmallValue& value);
  /// An attribute of the dataset that was added last.
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
  std::vector<std::pair<std::string, Group>> open_;  ///< the path to the last group, each with its full name
  std::vector<Dataset> last_;                        ///< one, or none yet
};

}  // namespace hortator::formats
