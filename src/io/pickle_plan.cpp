#include "io/pickle_plan.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/text.hpp"
#include "io/pickle_types.hpp"
#include "io/stored_rows.hpp"

namespace hortator::io {
namespace {

void require_storable(const NamedTensors& tensors) {
  std::set<std::string> names;
  const auto refuse = [](const std::string& name, std::string_view why, std::string hint) {
    throw UsageError({.what = text::concat("the tensor ", text::quote(name), " cannot be written as PyTorch's: ", why),
                      .hint = std::move(hint)});
  };
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) refuse(name, "the name comes twice", "give each a name of its own");
    if (!tensor.defined()) refuse(name, "it is undefined", "leave it out");
    if (tensor.layout() != at::kStrided) refuse(name, "it is not dense", "make it dense first");
    if (torch_name(tensor.scalar_type()).empty())
      refuse(name, text::concat("its type is ", tensor.scalar_type()), "convert it first");
  }
}

/// A tensor among others of its storage: the elements that it reaches, counted in the storage.
struct Reach {
  std::size_t index = 0;  ///< of the tensor
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

PickledTensor described(const at::Tensor& tensor) {
  return {.spec = spec_of(tensor), .strides = {tensor.strides().begin(), tensor.strides().end()}};
}

class Planner {
 public:
  explicit Planner(const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      plan_.tensors.emplace_back(name, PickledTensor());
      tensors_.push_back(tensor.detach().resolve_conj().resolve_neg());
    }
  }

  PicklePlan plan() && {
    std::map<std::pair<const void*, at::ScalarType>, std::vector<Reach>> sharing;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto& tensor = tensors_[i];
      const auto begin = tensor.storage_offset();
      const auto reach = described(tensor).reach();
      if (reach == 0) {
        store_alone(i);
      } else {
        sharing[{tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()}].push_back({i, begin, begin + reach});
      }
    }
    for (auto& [storage, reaches] : sharing) store_together(reaches);
    number_by_first_use();
    return std::move(plan_);
  }

 private:
  PickledTensor& place(std::size_t index) { return plan_.tensors[index].second; }

  /// What overlaps is one storage of the file; the rest of memory that tensors share, such as a pool that they were
  /// taken from, is none of their business.
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
      place(reach.index) = described(tensors_[reach.index]);
      place(reach.index).first = reach.begin - begin;
    }
  }

  /// Its elements alone, one after the other.
  void store_alone(std::size_t index) {
    const auto& tensor = tensors_[index];
    storage_of_[index] = storages_.size();
    storages_.push_back(tensor);
    auto& placed = place(index) = described(tensor);
    std::int64_t stride = 1;
    for (std::size_t i = placed.strides.size(); i-- > 0; stride *= std::max<std::int64_t>(placed.spec.shape[i], 1))
      placed.strides[i] = stride;
  }

  /// Storages in the order of the tensors: neighbours in the model are neighbours in the file.
  void number_by_first_use() {
    std::map<std::size_t, std::size_t> numbers;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto [number, is_new] = numbers.emplace(storage_of_.at(i), plan_.storages.size());
      if (is_new) plan_.storages.push_back(storages_[number->first]);
      place(i).storage = std::to_string(number->second);
    }
  }

  PicklePlan plan_;
  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> storages_;
  std::map<std::size_t, std::size_t> storage_of_;
};

}  // namespace

PicklePlan plan_pickle(const NamedTensors& tensors) {
  require_storable(tensors);
  return Planner(tensors).plan();
}

}  // namespace hortator::io
