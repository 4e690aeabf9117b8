#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/activity/activity.hpp"
#include "mpi/communicator.hpp"

/// Collectives on host values: numbers, plain structs, strings, vectors. Every one of them is @collective over its
/// communicator.
namespace hortator::mpi {

template <typename T>
concept Number = std::is_arithmetic_v<T>;
template <typename T>
concept Plain = std::is_trivially_copyable_v<T>;

/// How numbers are reduced.
enum class Op { sum, min, max, logical_and, logical_or };
std::string_view name_of(Op op);

enum class NumberType { float32, float64, boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64 };

template <Number T>
constexpr NumberType number_type() {
  if constexpr (std::is_same_v<T, double>) return NumberType::float64;
  if constexpr (std::is_same_v<T, float>) return NumberType::float32;
  if constexpr (std::is_same_v<T, bool>) return NumberType::boolean;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if constexpr (sizeof(T) == 8) return NumberType::int64;
    if constexpr (sizeof(T) == 4) return NumberType::int32;
    if constexpr (sizeof(T) == 2) return NumberType::int16;
    if constexpr (sizeof(T) == 1) return NumberType::int8;
  }
  if constexpr (sizeof(T) == 8) return NumberType::uint64;
  if constexpr (sizeof(T) == 4) return NumberType::uint32;
  if constexpr (sizeof(T) == 2) return NumberType::uint16;
  return NumberType::uint8;
}

void barrier(const Communicator& comm);
/// Drives MPI's progress engine: buffered sends may complete only inside an MPI call. Local; does not block.
void keep_going(const Communicator& comm);
void broadcast_bytes(const Communicator& comm, void* data, std::size_t bytes, int root);
void all_gather_bytes(const Communicator& comm, const void* mine, void* all, std::size_t bytes);

/// Sends to one rank while it receives from another: measures the speed between two ranks.
void exchange_bytes(const Communicator& comm, const void* out, int to, void* in, int from, std::size_t bytes);

/// In place.
void all_reduce_numbers(const Communicator& comm, void* numbers, std::size_t count, NumberType type, Op op);
/// `sum` is untouched on the first rank.
void sum_before_number(const Communicator& comm, const void* number, void* sum, NumberType type);
/// `counts` and `joined` are used on the root only.
void scatter_numbers(const Communicator& comm, const void* joined, const std::vector<int>& counts, void* mine,
                     std::size_t own, NumberType type, int root);

template <Number T>
T all_reduce(const Communicator& comm, T value, Op op) {
  const CollectiveScope here(comm, {.verb = "all_reduce", .bytes = sizeof(T), .detail = name_of(op)});
  all_reduce_numbers(comm, &value, 1, number_type<T>(), op);
  return value;
}

/// The same for each element, in place. All ranks pass the same number of elements.
template <Number T>
void all_reduce(const Communicator& comm, std::span<T> values, Op op) {
  const CollectiveScope here(comm, {.verb = "all_reduce", .bytes = values.size_bytes(), .detail = name_of(op)});
  all_reduce_numbers(comm, values.data(), values.size(), number_type<T>(), op);
}

/// The sum over the ranks before this one; zero on the first.
template <Number T>
T sum_before(const Communicator& comm, T value) {
  const CollectiveScope here(comm, {.verb = "sum_before", .bytes = sizeof(T)});
  T result{};
  sum_before_number(comm, &value, &result, number_type<T>());
  return comm.rank() == 0 ? T{} : result;
}

template <Plain T>
T broadcast(const Communicator& comm, T value, int root = 0) {
  broadcast_bytes(comm, &value, sizeof(T), root);
  return value;
}

std::string broadcast(const Communicator& comm, std::string_view value, int root = 0);

template <Plain T>
std::vector<T> all_gather(const Communicator& comm, const T& value) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  all_gather_bytes(comm, &value, all.data(), sizeof(T));
  return all;
}

bool all_gather_bytes_within(const Communicator& comm, const void* mine, void* all, std::size_t bytes,
                             std::optional<std::chrono::milliseconds> patience);

/// all_gather with a time limit. Empty if not all ranks have arrived when `patience` is over; then the communicator
/// cannot be used any more. Ranks may differ in patience; without one a rank waits for ever.
template <Plain T>
std::optional<std::vector<T>> all_gather_within(const Communicator& comm, const T& value,
                                                std::optional<std::chrono::milliseconds> patience) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  if (!all_gather_bytes_within(comm, &value, all.data(), sizeof(T), patience)) return {};
  return all;
}

/// The maximum number of bytes in one call of MPI.
constexpr std::size_t max_bytes_per_call = 0x7fffffff;

/// The strings of all ranks, in rank order, on every rank. If together they exceed the byte limit, each rank sends its
/// own in a separate call.
std::vector<std::string> all_gather(const Communicator& comm, std::string_view value,
                                    std::size_t most = max_bytes_per_call);

/// The strings of all ranks on `root`, nothing elsewhere. If together they exceed the byte limit, each rank sends its
/// own in a separate call.
std::vector<std::string> gather(const Communicator& comm, std::string_view value, int root = 0,
                                std::size_t most = max_bytes_per_call);

/// Scatters the root's `parts`, which are in rank order, and returns this rank's part of `own` numbers. `parts` is used
/// on the root only.
template <Number T>
std::vector<T> scatter(const Communicator& comm, const std::vector<std::vector<T>>& parts, std::size_t own,
                       int root = 0) {
  const CollectiveScope here(comm,
                             {.verb = "scatter", .bytes = own * sizeof(T), .root = root, .has_same_bytes = false});
  std::vector<int> counts;
  std::vector<T> joined;
  for (const auto& part : parts) {
    if (comm.rank() != root) break;
    counts.push_back(static_cast<int>(part.size()));
    joined.insert(joined.end(), part.begin(), part.end());
  }
  std::vector<T> mine(own);
  scatter_numbers(comm, joined.data(), counts, mine.data(), own, number_type<T>(), root);
  return mine;
}

}  // namespace hortator::mpi
