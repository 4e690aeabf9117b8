#include "formats/torch/pickle/plan.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "core/text/text.hpp"
#include "formats/torch/pickle/types.hpp"

namespace hortator::formats {
namespace {

[[noreturn]] void refuse_to_pickle(const std::string& name, std::string_view why, std::string hint) {
  throw UsageError({.what = text::concat("The tensor ", text::quote(name), " cannot be written as PyTorch's: ", why),
                    .hint = std::move(hint)});
}

void require_picklable(const NamedSpecs& tensors) {
  std::set<std::string> names;
  for (const auto& [name, spec] : tensors) {
    if (!names.insert(name).second) refuse_to_pickle(name, "the name appears twice", "give each tensor a unique name");
    if (torch_name(spec.type).empty())
      refuse_to_pickle(name, text::concat("its type is ", spec.type), "convert it first");
  }
}

NamedSpecs picklable_specs(const NamedTensors& tensors) {
  NamedSpecs specs;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) refuse_to_pickle(name, "it is undefined", "leave it out");
    if (tensor.layout() != at::kStrided) refuse_to_pickle(name, "it is not dense", "convert it with to_dense() first");
    specs.emplace_back(name, spec_of(tensor));
  }
  return specs;
}

/// A tensor in a storage of its own.
PickledTensor in_row_major(const TensorSpec& spec) {
  PickledTensor tensor{.spec = spec, .strides = std::vector<std::int64_t>(spec.shape.size())};
  std::int64_t stride = 1;
  for (std::size_t i = spec.shape.size(); i-- > 0; stride *= std::max<std::int64_t>(spec.shape[i], 1))
    tensor.strides[i] = stride;
  return tensor;
}

PickledTensor as_it_lies(const at::Tensor& tensor) {
  return {.spec = spec_of(tensor), .strides = {tensor.strides().begin(), tensor.strides().end()}};
}

/// The range of elements that a tensor spans in its memory.
struct Reach {
  std::size_t index = 0;  ///< number of the tensor
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class TyingPlanner {
 public:
  explicit TyingPlanner(const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      tied_.plan.tensors.emplace_back(name, PickledTensor());
      tensors_.push_back(tensor.detach().resolve_conj().resolve_neg());
    }
    storage_of_.resize(tensors_.size());
  }

  TiedPlan plan() && {
    std::map<std::pair<const void*, at::ScalarType>, std::vector<Reach>> sharing;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto& tensor = tensors_[i];
      const auto begin = tensor.storage_offset();
      const auto reach = as_it_lies(tensor).reach();
      if (reach == 0) {
        store_alone(i);
      } else {
        sharing[{tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()}].push_back({i, begin, begin + reach});
      }
    }
    for (auto& [memory, reaches] : sharing) store_together(reaches);
    number_by_first_use();
    return std::move(tied_);
  }

 private:
  PickledTensor& planned(std::size_t index) { return tied_.plan.tensors[index].second; }

  /// Overlapping tensors form one storage of the file; the other memory, such as a pool that they were taken from, is
  /// not written.
  void store_together(std::vector<Reach>& reaches) {
    std::ranges::sort(reaches, {}, [](const Reach& reach) { return std::tuple(reach.begin, reach.end, reach.index); });
    for (std::size_t first = 0; first < reaches.size();) {
      auto end = reaches[first].end;
      auto next = first + 1;
      for (; next < reaches.size() && reaches[next].begin < end; ++next) end = std::max(end, reaches[next].end);
      store({reaches.data() + first, next - first}, end);
      first = next;
    }
  }

  void store(std::span<const Reach> overlapping, std::int64_t end) {
    const auto& tensor = tensors_[overlapping.front().index];
    const auto begin = overlapping.front().begin;
    if (overlapping.size() == 1 && end - begin > tensor.numel()) return store_alone(overlapping.front().index);
    storages_.push_back(tensor.as_strided({end - begin}, {1}, begin));
    for (const auto& reach : overlapping) {
      storage_of_[reach.index] = storages_.size() - 1;
      planned(reach.index) = as_it_lies(tensors_[reach.index]);
      planned(reach.index).first = reach.begin - begin;
    }
  }

  void store_alone(std::size_t index) {
    storage_of_[index] = storages_.size();
    storages_.push_back(tensors_[index]);
    planned(index) = in_row_major(spec_of(tensors_[index]));
  }

  /// Numbers storages in the order of the tensors, so that neighbours in the model are neighbours in the file.
  void number_by_first_use() {
    std::map<std::size_t, std::size_t> numbers;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto [number, is_new] = numbers.emplace(storage_of_[i], tied_.storages.size());
      if (is_new) {
        const auto& storage = storages_[number->first];
        tied_.plan.storages.push_back({.type = storage.scalar_type(), .elements = storage.numel()});
        tied_.storages.push_back(storage);
      }
      planned(i).storage = std::to_string(number->second);
    }
  }

  TiedPlan tied_;
  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> storages_;
  std::vector<std::size_t> storage_of_;
};

}  // namespace

PicklePlan plan_pickle(const NamedSpecs& tensors) {
  require_picklable(tensors);
  PicklePlan plan;
  for (const auto& [name, spec] : tensors) {
    auto tensor = in_row_major(spec);
    tensor.storage = std::to_string(plan.storages.size());
    plan.tensors.emplace_back(name, std::move(tensor));
    plan.storages.push_back({.type = spec.type, .elements = spec.elements()});
  }
  return plan;
}

TiedPlan plan_tied_pickle(const NamedTensors& tensors) {
  require_picklable(picklable_specs(tensors));
  return TyingPlanner(tensors).plan();
}

}  // namespace hortator::formats
