#include "interception/weight_operators.hpp"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"

namespace hortator::interception {
namespace {

constexpr std::size_t layers = 4;
using Computes = std::array<std::shared_ptr<WeightOperator>, layers>;

/// A storage by its address, which stays taken while this lives.
using StorageName = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// A weight that may have ended; its address stays taken while this lives.
using WeakWeight = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

/// Where a weight lies: several may share a storage, as those in an array of ZeRO do.
struct WeightPlace {
  const c10::StorageImpl* storage = nullptr;
  std::int64_t offset = 0;

  auto operator<=>(const WeightPlace&) const = default;
};

bool is_none(const Computes& computes) {
  return std::ranges::none_of(computes, [](const auto& one) { return one != nullptr; });
}

struct AttachedWeight {
  WeakWeight weight;
  StorageName storage;  ///< of the weight when it was last looked for
  WeightPlace place;
  Computes computes;

  bool is_empty() const { return is_none(computes); }
};

struct AttachedWeights {
  std::mutex mutex;
  std::unordered_map<const c10::TensorImpl*, AttachedWeight> weights;
  std::map<WeightPlace, const c10::TensorImpl*> by_place;
};

std::atomic<std::size_t> attached_count = 0;

// Never destroyed: tensors in other static objects may outlive it.
AttachedWeights& attached() {
  static auto& weights = *new AttachedWeights;
  return weights;
}

WeightPlace place_of(const at::Tensor& tensor) {
  return {.storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(),
          .offset = tensor.storage_offset()};
}

/// Undefined if it has ended.
at::Tensor weight_of(const AttachedWeight& one) {
  auto impl = one.weight.lock();
  return impl.defined() ? at::Tensor(std::move(impl)) : at::Tensor();
}

void forget_place(AttachedWeights& all, const AttachedWeight& one) {
  const auto found = all.by_place.find(one.place);
  if (found != all.by_place.end() && found->second == one.weight._unsafe_get_target()) all.by_place.erase(found);
}

/// Names the weight's present place, and lets its operators be intercepted.
void find_place(AttachedWeights& all, AttachedWeight& one, const at::Tensor& weight) {
  forget_place(all, one);
  one.storage = StorageName(weight.storage().getWeakStorageImpl());
  one.place = place_of(weight);
  all.by_place.insert_or_assign(one.place, weight.unsafeGetTensorImpl());
  add_key(weight);
}

bool is_found(const AttachedWeight& one, const at::Tensor& weight) {
  return one.place == place_of(weight) && carries_key(weight);
}

/// What is attached to the weight at a tensor's place.
struct Found {
  at::Tensor weight;
  Computes computes;
};

Found find_at(const at::Tensor& seen) {
  if (attached_count.load(std::memory_order_relaxed) == 0 || !seen.defined() || !seen.has_storage()) return {};
  auto& all = attached();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_place.find(place_of(seen));
  if (found == all.by_place.end()) return {};
  const auto& one = all.weights.at(found->second);
  auto weight = weight_of(one);
  if (!weight.defined()) return {};
  return {.weight = std::move(weight), .computes = one.computes};
}

struct KnownUse {
  WeightUse use;
  std::size_t position;
};

const std::unordered_map<std::string, KnownUse>& known_uses() {
  static const std::unordered_map<std::string, KnownUse> known = {{"aten::linear", {WeightUse::product, 1}},
                                                                  {"aten::addmm", {WeightUse::product, 2}},
                                                                  {"aten::mm", {WeightUse::product, 1}},
                                                                  {"aten::matmul", {WeightUse::product, 1}},
                                                                  {"aten::embedding", {WeightUse::embedding, 0}},
                                                                  {"aten::conv1d", {WeightUse::convolution, 1}},
                                                                  {"aten::conv2d", {WeightUse::convolution, 1}},
                                                                  {"aten::conv3d", {WeightUse::convolution, 1}},
                                                                  {"aten::convolution", {WeightUse::convolution, 1}}};
  return known;
}

const KnownUse* known_use(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, const KnownUse*> known;
  const auto* schema = &op.schema();
  if (const auto found = known.find(schema); found != known.end()) return found->second;
  const auto use = known_uses().find(op.operator_name().name);
  return known.emplace(schema, use == known_uses().end() ? nullptr : &use->second).first->second;
}

/// What backward computes of a weight is no layer's forward. Recomputation within backward has gradients on.
bool is_backward() { return torch::autograd::get_current_graph_task_id() != -1 && !c10::GradMode::is_enabled(); }

/// The layers of a weight whose operators are running: plain() runs those after them.
struct Running {
  WeightPlace place = {};
  std::size_t next = 0;
};
thread_local Running running;

class RunningScope {
 public:
  explicit RunningScope(Running inner) : before_(std::exchange(running, inner)) {}
  ~RunningScope() { running = before_; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  Running before_;
};

}  // namespace

bool WeightCall::is_linear() const { return op.operator_name().name == "aten::linear"; }

bool reads_as_layer(const WeightCall& call, bool is_transposed) {
  if (call.use != WeightUse::product || call.seen.dim() != 2) return false;
  const auto& own = call.weight;
  if (call.is_linear() != is_transposed)
    return call.seen.sizes() == own.sizes() && call.seen.strides() == own.strides();
  return call.seen.size(0) == own.size(1) && call.seen.size(1) == own.size(0) && call.seen.stride(0) == own.stride(1) &&
         call.seen.stride(1) == own.stride(0);
}

void attach_to_weight(const at::Tensor& weight, WeightLayer layer, std::shared_ptr<WeightOperator> computes) {
  start_interception();
  auto& all = attached();
  const std::lock_guard lock(all.mutex);
  auto [found, is_new] = all.weights.try_emplace(
      weight.unsafeGetTensorImpl(), AttachedWeight{.weight = WeakWeight(weight.getIntrusivePtr()),
                                                   .storage = StorageName(weight.storage().getWeakStorageImpl()),
                                                   .place = {},
                                                   .computes = {}});
  found->second.computes[static_cast<std::size_t>(layer)] = std::move(computes);
  find_place(all, found->second, weight);
  if (is_new) ++attached_count;
}

void detach_from_weight(const at::Tensor& weight, WeightLayer layer, const WeightOperator& computes) noexcept {
  std::shared_ptr<WeightOperator> released;  // destroyed without the lock
  auto& all = attached();
  const std::lock_guard lock(all.mutex);
  const auto found = all.weights.find(weight.unsafeGetTensorImpl());
  if (found == all.weights.end()) return;
  auto& present = found->second.computes[static_cast<std::size_t>(layer)];
  if (present.get() != &computes) return;
  released = std::move(present);
  if (!found->second.is_empty()) return;
  forget_place(all, found->second);
  if (!claim_of(weight)) remove_key(weight);
  all.weights.erase(found);
  --attached_count;
}

void remove_key_of_claim(const at::Tensor& tensor) {
  auto& all = attached();
  const std::lock_guard lock(all.mutex);
  if (!all.weights.contains(tensor.unsafeGetTensorImpl())) remove_key(tensor);
}

bool changes_products(const at::Tensor& weight) {
  for (const auto& one : find_at(weight).computes)
    if (one && one->changes_products()) return true;
  return false;
}

std::shared_ptr<WeightOperator> operator_of(const at::Tensor& weight, WeightLayer layer) {
  return find_at(weight).computes[static_cast<std::size_t>(layer)];
}

bool is_packed(const at::Tensor& weight) { return operator_of(weight, WeightLayer::packed) != nullptr; }

std::vector<std::int64_t> sizes_of_weight(const at::Tensor& weight) {
  const auto found = find_at(weight);
  const auto& packed = found.computes[static_cast<std::size_t>(WeightLayer::packed)];
  return packed ? packed->sizes_of_layer() : weight.sizes().vec();
}

void refresh_weights() {
  if (attached_count.load(std::memory_order_relaxed) == 0) return;
  std::vector<AttachedWeight> ended;  // destroyed without the lock
  auto& all = attached();
  const std::lock_guard lock(all.mutex);
  for (auto next = all.weights.begin(); next != all.weights.end();) {
    auto& one = next->second;
    if (const auto weight = weight_of(one); weight.defined()) {
      if (!is_found(one, weight)) find_place(all, one, weight);
      ++next;
      continue;
    }
    forget_place(all, one);
    ended.push_back(std::move(one));
    next = all.weights.erase(next);
    --attached_count;
  }
}

std::optional<std::size_t> weight_position(const c10::OperatorHandle& op) {
  if (attached_count.load(std::memory_order_relaxed) == 0) return {};
  const auto* use = known_use(op);
  return use == nullptr || is_backward() ? std::nullopt : std::optional(use->position);
}

bool run_weight_operator(const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t position,
                         const at::Tensor& seen, const std::function<void()>& plain) {
  const auto [weight, computes] = find_at(seen);
  if (is_none(computes)) return false;
  const auto place = place_of(seen);
  const auto first = running.place == place ? running.next : 0;
  for (auto layer = first; layer < layers; ++layer) {
    if (!computes[layer]) continue;
    const std::function<void()> next = [&, layer] {
      const RunningScope scope({.place = place, .next = layer + 1});
      if (!run_weight_operator(op, stack, position, seen, plain)) plain();
    };
    if (computes[layer]->run({.op = op,
                              .stack = stack,
                              .use = known_use(op)->use,
                              .position = position,
                              .seen = seen,
                              .weight = weight,
                              .plain = next}))
      return true;
  }
  return false;
}

}  // namespace hortator::interception
