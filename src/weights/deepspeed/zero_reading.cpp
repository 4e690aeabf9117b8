#include "weights/deepspeed/zero_reading.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "weights/deepspeed/flat_plan.hpp"
#include "weights/deepspeed/rank_arrays.hpp"
#include "weights/deepspeed/zero_file.hpp"

namespace hortator::weights {
namespace {

using formats::NamedShape;
using formats::PickledTensor;

FlatLengths lengths_of(const ArraysOfRanks& ranks) {
  FlatLengths lengths;
  for (const auto& arrays : ranks) {
    auto& of_rank = lengths.emplace_back();
    for (const auto& array : arrays) of_rank.push_back(array.spec.elements());
  }
  return lengths;
}

class FolderReading {
 public:
  FolderReading(const ZeroFolder& folder, formats::FilePool& files) : folder_(folder), files_(files) {}

  ZeroContents run() {
    if (folder_.models.empty()) refuse_folder(folder_, "it has no *_model_states.pt");
    const ZeroFile first(files_, folder_.models.front());
    model_ = first.parsed(formats::parse_zero_model);
    require_optimizers();
    auto of_ranks = read_rank_arrays(folder_, files_);
    contents_.optimizer = std::move(of_ranks.optimizer);
    add_trained(of_ranks.arrays);
    if (is_third()) add_frozen();
    add_rest(first);
    put_in_order();
    return std::move(contents_);
  }

 private:
  bool is_third() const { return contents_.optimizer.stage == 3; }

  /// Without ZeRO (stage 0) the model's file has all parameters, and no other is there.
  void require_optimizers() const {
    if (!folder_.optimizers.empty() || model_.trained.empty()) return;
    refuse_folder(folder_, "it has no *_optim_states.pt, which hold the parameters in fp32");
  }

  FlatSlices planned(const ArraysOfRanks& ranks) const {
    const auto lengths = lengths_of(ranks);
    FlatSlices all;
    try {
      if (is_third()) return cut_tensors(lengths, sizes_of(all_trained()));
      for (std::size_t array = 0; array < model_.trained.size(); ++array) {
        const auto& gaps = contents_.optimizer.gaps;
        auto slices = cut_array(lengths, array, sizes_of(model_.trained[array]),
                                array < gaps.size() ? gaps[array] : std::vector<std::int64_t>());
        std::ranges::move(slices, std::back_inserter(all));
      }
    } catch (const FlatFault& fault) {
      refuse_folder(folder_, fault.what());
    }
    return all;
  }

  std::vector<NamedShape> all_trained() const {
    std::vector<NamedShape> all;
    for (const auto& shapes : model_.trained) all.insert(all.end(), shapes.begin(), shapes.end());
    return all;
  }

  static std::vector<std::int64_t> sizes_of(const std::vector<NamedShape>& shapes) {
    std::vector<std::int64_t> sizes;
    for (const auto& [name, shape] : shapes) sizes.push_back(formats::elements_of(shape));
    return sizes;
  }

  StoredTensor located(const std::vector<std::int64_t>& shape, const std::vector<FlatSlice>& slices,
                       const ArraysOfRanks& ranks) const {
    const auto& type = ranks.front().front().spec.type;
    StoredTensor tensor{.spec = {.type = type, .shape = shape}};
    for (const auto& slice : slices) {
      const auto& array = ranks[slice.rank][slice.array];
      if (array.spec.type != type) refuse_folder(folder_, "its ranks have parameters of different types");
      const auto skipped = static_cast<std::uint64_t>(slice.first * array.spec.element_bytes());
      tensor.slices.push_back({.file = array.file, .offset = array.offset + skipped, .elements = slice.elements});
    }
    return tensor;
  }

  void add_trained(const std::map<std::string, ArraysOfRanks>& all_arrays) {
    if (model_.trained.empty()) return;
    const auto arrays = contents_.optimizer.masters.size();
    if (arrays == 0 || (!is_third() && arrays != model_.trained.size()))
      refuse_folder(folder_, text::concat("the model has ", model_.trained.size(),
                                          " groups of parameters, the optimizer ", arrays));
    const auto shapes = all_trained();
    for (const auto& [kind, ranks] : all_arrays) {
      const auto slices = planned(ranks);
      if (kind.empty()) begin_parameters(shapes, slices);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        auto tensor = located(shapes[i].second, slices[i], ranks);
        auto& target = kind.empty() ? contents_.tensors[shapes[i].first] : contents_.parameters[i].moments[kind];
        target = std::move(tensor);
      }
    }
  }

  /// In ZeRO 1 and 2 the array of a parameter is its group.
  void begin_parameters(const std::vector<NamedShape>& shapes, const FlatSlices& slices) {
    std::size_t number = 0;
    for (std::size_t group = 0; group < model_.trained.size(); ++group) {
      for (std::size_t i = 0; i < model_.trained[group].size(); ++i, ++number) {
        const auto array = !is_third() || slices[number].empty() ? group : slices[number].front().array;
        contents_.parameters.push_back({.name = shapes[number].first, .array = array});
      }
    }
  }

  /// ZeRO 3 cuts parameters that are not trained as well; each rank's file of the model has its parts.
  void add_frozen() {
    if (model_.frozen.empty()) return;
    const auto ranks = folder_.optimizers.size();
    if (folder_.models.size() != ranks)
      refuse_folder(
          folder_, text::concat("it has ", folder_.models.size(), " files of the model, ", ranks, " of the optimizer"));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const ZeroFile file(files_, folder_.models[rank]);
      const auto parts = file.parsed(formats::parse_zero_model).frozen_parts;
      for (const auto& [name, shape] : model_.frozen) add_frozen_part(file, rank, name, shape, parts);
    }
  }

  void add_frozen_part(const ZeroFile& file, std::size_t rank, const std::string& name,
                       const std::vector<std::int64_t>& shape, const std::map<std::string, PickledTensor>& parts) {
    const auto found = parts.find(name);
    const auto size = formats::elements_of(shape);
    const auto part = core::ceil_div(size, static_cast<std::int64_t>(folder_.optimizers.size()));
    if (found == parts.end() || found->second.spec.elements() < part || !found->second.is_row_major())
      file.refuse(text::concat("it has no part of ", text::quote(name)));
    const auto begin = std::min(static_cast<std::int64_t>(rank) * part, size);
    const core::Range own{begin, std::min(begin + part, size)};
    auto& tensor = contents_.tensors[name];
    tensor.spec = {.type = found->second.spec.type, .shape = shape};
    if (own.size() > 0)
      tensor.slices.push_back({.file = file.number(), .offset = file.offset_of(found->second), .elements = own});
  }

  /// Buffers, and what is not trained: from the model's file. ZeRO 3 leaves parameters empty there.
  void add_rest(const ZeroFile& first) {
    for (const auto& [name, tensor] : model_.module) {
      const bool is_left_out = is_third() && tensor.spec.elements() == 0 && !model_.buffers.contains(name);
      if (is_left_out || contents_.tensors.contains(name) || model_.shared.contains(name)) continue;
      contents_.tensors.emplace(name, first.stored(tensor));
    }
    for (const auto& [name, shared] : model_.shared) {
      if (!contents_.tensors.contains(shared))
        refuse_folder(folder_, text::concat("it has no tensor ", text::quote(shared)));
    }
    contents_.shared = model_.shared;
  }

  void put_in_order() {
    std::set<std::string> named;
    const auto add = [&](const std::string& name) {
      const bool is_known = contents_.tensors.contains(name) || contents_.shared.contains(name);
      if (is_known && named.insert(name).second) contents_.names.push_back(name);
    };
    for (const auto& [name, tensor] : model_.module) add(name);
    for (const auto& [name, tensor] : contents_.tensors) add(name);
  }

  const ZeroFolder& folder_;
  formats::FilePool& files_;
  formats::ZeroModel model_;
  ZeroContents contents_;
};

}  // namespace

ZeroContents read_zero_folder(const ZeroFolder& folder, formats::FilePool& files) {
  return FolderReading(folder, files).run();
}

}  // namespace hortator::weights
