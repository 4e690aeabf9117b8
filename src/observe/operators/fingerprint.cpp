#include "observe/operators/fingerprint.hpp"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/hash.hpp"
#include "machine/races/storage_memory.hpp"

namespace hortator::observe {
namespace {

constexpr std::size_t block_elements = 4096;
constexpr std::size_t max_unit_bytes = 4;

// Odd, so that a change of one element always changes the sum over its block.
constexpr auto make_weights() {
  std::array<std::uint64_t, block_elements> weights{};
  for (std::size_t i = 0; i < block_elements; ++i) weights[i] = core::mix(0, i) | 1U;
  return weights;
}
const std::array<std::uint64_t, block_elements> weights = make_weights();

struct BlockHash {
  std::uint64_t bits = 0;
  std::uint64_t elements = 0;
};

struct BlockSum {
  double sum = 0;
  double norm = 0;
};

constexpr std::uint64_t scattered(std::uint64_t element) {
  const auto product = element * 0x9e3779b97f4a7c15ULL;
  return (product ^ (product >> 32U)) * 0xbf58476d1ce4e5b9ULL;
}

template <typename Unit>
std::uint64_t hash_bits(const Unit* units, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += units[i] * weights[i];
  return sum;
}

template <typename Unit>
std::uint64_t hash_elements(const Unit* units, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += scattered(units[i]);
  return sum;
}

// Eight sums, which the compiler can keep in vectors; the order of additions does not depend on the machine.
template <typename Number>
BlockSum add_up(const Number* numbers, std::size_t count) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::array<double, lanes> norms{};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto number = static_cast<double>(numbers[i + lane]);
      sums[lane] += number;
      norms[lane] += std::abs(number);
    }
  }
  BlockSum total;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    total.sum += sums[lane];
    total.norm += norms[lane];
  }
  for (; i < count; ++i) {
    total.sum += static_cast<double>(numbers[i]);
    total.norm += std::abs(static_cast<double>(numbers[i]));
  }
  return total;
}

template <typename Number>
bool add_as(const void* memory, std::size_t begin, std::size_t count, BlockSum& sum) {
  sum = add_up(static_cast<const Number*>(memory) + begin, count);
  return true;
}

bool add_numbers(at::ScalarType type, const void* memory, std::size_t begin, std::size_t count, BlockSum& sum) {
  switch (type) {
    case at::kFloat:
      return add_as<float>(memory, begin, count, sum);
    case at::kDouble:
      return add_as<double>(memory, begin, count, sum);
    case at::kHalf:
      return add_as<c10::Half>(memory, begin, count, sum);
    case at::kBFloat16:
      return add_as<c10::BFloat16>(memory, begin, count, sum);
    case at::kLong:
      return add_as<std::int64_t>(memory, begin, count, sum);
    case at::kInt:
      return add_as<std::int32_t>(memory, begin, count, sum);
    case at::kShort:
      return add_as<std::int16_t>(memory, begin, count, sum);
    case at::kChar:
      return add_as<std::int8_t>(memory, begin, count, sum);
    case at::kByte:
    case at::kBool:
      return add_as<std::uint8_t>(memory, begin, count, sum);
    default:
      return false;
  }
}

template <typename Unit>
void hash_units(const void* memory, std::size_t begin, std::size_t count, bool with_elements, BlockHash& hash) {
  const auto* const units = static_cast<const Unit*>(memory) + begin;
  hash.bits = hash_bits(units, count);
  if (with_elements) hash.elements = hash_elements(units, count);
}

void hash_block(std::size_t unit_bytes, const void* memory, std::size_t begin, std::size_t count, bool with_elements,
                BlockHash& hash) {
  if (unit_bytes == 1) return hash_units<std::uint8_t>(memory, begin, count, with_elements, hash);
  if (unit_bytes == 2) return hash_units<std::uint16_t>(memory, begin, count, with_elements, hash);
  hash_units<std::uint32_t>(memory, begin, count, with_elements, hash);
}

TensorRecord described(const at::Tensor& tensor) {
  return {.type = c10::toString(tensor.scalar_type()), .sizes = tensor.sizes().vec()};
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor dense_on_host(const at::Tensor& tensor) {
  if (is_plain(tensor)) return tensor;
  const c10::InferenceMode without_history;
  return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous();
}

// Not const_data_ptr(), since parameters that are paged refuse accesses outside of operators.
const void* memory_of(const at::Tensor& tensor) {
  const auto range = machine::range_of(tensor);
  if (!range) return nullptr;
  const auto offset = static_cast<std::size_t>(tensor.storage_offset()) * tensor.element_size();
  return reinterpret_cast<const void*>(range->begin + offset);  // NOLINT(performance-no-int-to-ptr)
}

enum class Detail { bits, all };

// Blocks are read by several threads, and combined in their order. Units have at most 4 bytes, so that longer numbers
// are several of them.
TensorRecord read(const at::Tensor& tensor, Detail detail) {
  auto record = described(tensor);
  const auto dense = dense_on_host(tensor);
  const auto* const memory = memory_of(dense);
  const std::size_t bytes = dense.nbytes();
  const std::size_t unit_bytes = std::min<std::size_t>(dense.element_size(), max_unit_bytes);
  const std::size_t units = bytes / unit_bytes;
  const std::size_t blocks = (units + block_elements - 1) / block_elements;
  const std::size_t units_of_number = dense.element_size() / unit_bytes;
  std::vector<BlockHash> hashes(blocks);
  std::vector<BlockSum> sums(blocks);
  bool has_sums = detail == Detail::all;
  const auto type = dense.scalar_type();
  if (BlockSum none; has_sums) has_sums = add_numbers(type, memory, 0, 0, none);
  at::parallel_for(0, static_cast<std::int64_t>(blocks), 8, [&](std::int64_t first, std::int64_t last) {
    for (auto block = static_cast<std::size_t>(first); block < static_cast<std::size_t>(last); ++block) {
      const auto begin = block * block_elements;
      const auto count = std::min(block_elements, units - begin);
      hash_block(unit_bytes, memory, begin, count, detail == Detail::all, hashes[block]);
      if (has_sums) add_numbers(type, memory, begin / units_of_number, count / units_of_number, sums[block]);
    }
  });
  BlockSum total;
  record.bits = core::mix(unit_bytes, units);
  for (std::size_t block = 0; block < blocks; ++block) {
    record.bits = core::mix(record.bits, hashes[block].bits);
    record.elements += hashes[block].elements;
    total.sum += sums[block].sum;
    total.norm += sums[block].norm;
  }
  if (has_sums && std::isfinite(total.norm)) {
    record.sum = total.sum;
    record.norm = total.norm;
  }
  return record;
}

}  // namespace

// Tensors that are divided, and parameters that are elsewhere, have none.
bool has_memory(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  return tensor.numel() == 0 || machine::range_of(tensor).has_value();
}

TensorRecord fingerprint(const at::Tensor& tensor) { return read(tensor, Detail::all); }

TensorRecord brief_fingerprint(const at::Tensor& tensor) { return read(tensor, Detail::bits); }

}  // namespace hortator::observe
