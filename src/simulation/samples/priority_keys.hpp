#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hortator::simulation {

/// A random key of sample number `number` for PriorityKeys. The one with the largest key is any of the samples with a
/// probability in proportion to its priority, which is from 0 and finite.
double priority_key(double priority, std::uint64_t key, std::int64_t number);

/// Which samples a buffer keeps by priority: those with the largest keys (Efraimidis and Spirakis), so that a sample is
/// kept the more likely, the higher its priority is, however many come later.
class PriorityKeys {
 public:
  explicit PriorityKeys(std::int64_t capacity) : capacity_(capacity) {}

  /// The slot of a new sample; nothing if it is not kept.
  std::optional<std::int64_t> place(double key);

  std::vector<double> of_slots() const;  ///< the key of the sample in each slot
  /// Takes over the keys of samples in the slots 0, 1, ..., at most as many as there are slots.
  void assign(const std::vector<double>& keys);

 private:
  std::int64_t capacity_;
  std::vector<std::pair<double, std::int64_t>> heap_ = {};  ///< key and slot; the smallest key is first
};

}  // namespace hortator::simulation
