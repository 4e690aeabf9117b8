#include "checkpoint/write/hdf5_structure.hpp"

#include <algorithm>

#include "checkpoint/format.hpp"
#include "formats/hdf5/structure.hpp"

namespace hortator::checkpoint {
namespace {

class StructureBuilder {
 public:
  StructureBuilder(const formats::File& file, std::size_t index, const Layout& layout)
      : out_(file), index_(index), layout_(layout) {}

  /// Adds the entries of one outline. Its tensors are those of the layout from index `tensor` on.
  void add(const StateOutline& outline, const std::string& prefix, std::size_t tensor, bool with_values) {
    for (const auto& [name, content] : outline) {
      if (std::holds_alternative<formats::TensorSpec>(content)) {
        add_tensor(layout_.tensors[tensor++]);
      } else if (with_values) {
        add_value(prefix + name, content);
      }
    }
  }

  void add_value(const std::string& name, const decltype(OutlineEntry::content)& content) {
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (!std::is_same_v<T, formats::TensorSpec>) out_.add(name, formats::SmallValue(value));
        },
        content);
  }

  std::vector<std::int64_t> offsets() && { return std::move(offsets_); }

 private:
  void add_tensor(const TensorPlacement& tensor) {
    if (tensor.pieces.empty() && index_ == 0) out_.add(tensor.name, tensor.spec);
    const auto here =
        std::ranges::find_if(tensor.pieces, [&](const StoredPiece& piece) { return piece.file == index_; });
    if (here == tensor.pieces.end()) return;
    const auto part = stored_spec(tensor.spec, *here);
    offsets_.push_back(out_.add(tensor.name, part).offset);
    if (tensor.pieces.size() > 1) out_.add_to_last(begin_attribute, here->elements.begin);
  }

  formats::StructureWriter out_;
  std::size_t index_;
  const Layout& layout_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace

std::vector<std::int64_t> write_hdf5_structure(const formats::File& file, std::size_t index, const Layout& layout,
                                               const StateDescription& description) {
  StructureBuilder builder(file, index, layout);
  builder.add_value(format_attribute, format_version);
  builder.add_value(world_size_attribute, static_cast<std::int64_t>(description.own.size()));
  builder.add(description.common, "", 0, index == 0);
  for (std::size_t rank = 0; rank < description.own.size(); ++rank) {
    if (layout.file_of[rank] != index) continue;
    builder.add(description.own[rank], rank_folder(static_cast<int>(rank)) + "/", layout.first_own[rank], true);
  }
  return std::move(builder).offsets();
}

}  // namespace hortator::checkpoint
