// Fuzzes the reader of DeepSpeed's files: any pickle is refused, or describes tensors whose slices in the ranks' arrays
// are each element once.
#include <cstdint>
#include <limits>

#include "formats/torch/deepspeed/zero_files.hpp"
#include "formats/torch/pickle/machine.hpp"
#include "target.hpp"
#include "weights/deepspeed/flat_plan.hpp"

using namespace hortator;

namespace {

void require_whole(const weights::FlatSlices& all, const std::vector<std::int64_t>& sizes,
                   const weights::FlatLengths& lengths) {
  if (all.size() != sizes.size()) __builtin_trap();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t next = 0;
    for (const auto& slice : all[i]) {
      if (slice.elements.begin != next || slice.elements.size() <= 0) __builtin_trap();
      if (slice.first < 0 || slice.first > lengths[slice.rank][slice.array] - slice.elements.size()) __builtin_trap();
      next = slice.elements.end;
    }
    if (next != sizes[i]) __builtin_trap();
  }
}

/// The tensors of a model in the arrays that the same pickle may have, and in arrays that hold them exactly.
void plan(const std::vector<std::int64_t>& sizes, const formats::ZeroArrays& arrays) {
  std::vector<std::int64_t> of_rank;
  for (const auto& array : arrays.masters) of_rank.push_back(array.spec.elements());
  const std::vector<std::int64_t> gaps = arrays.gaps.empty() ? std::vector<std::int64_t>() : arrays.gaps.front();
  std::int64_t total = 0;
  for (const auto size : sizes) {
    if (__builtin_add_overflow(total, size, &total)) return;
  }
  for (const weights::FlatLengths& lengths :
       {weights::FlatLengths{of_rank, of_rank}, {{total / 3}, {total - total / 3}}}) {
    try {
      if (!lengths.front().empty()) require_whole(weights::cut_array(lengths, 0, sizes, gaps), sizes, lengths);
      require_whole(weights::cut_tensors(lengths, sizes), sizes, lengths);
    } catch (const weights::FlatFault&) {
    }
  }
}

}  // namespace

FUZZ_TARGET(zero_files) {
  const auto any_bytes = [](const std::string&) { return std::optional(std::numeric_limits<std::uint64_t>::max()); };
  formats::ZeroArrays arrays;
  try {
    const auto value =
        formats::parse_pickle({reinterpret_cast<const char*>(data), size}, any_bytes, formats::ForeignObjects::kept);
    try {
      arrays = formats::parse_zero_arrays(value);
    } catch (const formats::PickleFault&) {
    }
    const auto model = formats::parse_zero_model(value);
    for (const auto& shapes : model.trained) {
      std::vector<std::int64_t> sizes;
      for (const auto& [name, shape] : shapes) sizes.push_back(formats::elements_of(shape));
      plan(sizes, arrays);
    }
  } catch (const formats::PickleFault&) {
  }
  return 0;
}
