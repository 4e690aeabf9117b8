#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <hortator/accelerator.hpp>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace hortator {

/// Options of find_executable_batch_size().
struct BatchSizeOptions {
  std::int64_t start = 128;
  /// The size to try after `batch_size`. By default nine tenths of it, rounded down, as in Accelerate.
  std::function<std::int64_t(std::int64_t batch_size)> next = {};
  /// How long a rank that is out of memory waits for the others if it cannot release them from a collective; see below.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

namespace detail {

class HORTATOR_API BatchSizeSearch {
 public:
  BatchSizeSearch(Accelerator& accelerator, BatchSizeOptions options);
  ~BatchSizeSearch();
  BatchSizeSearch(const BatchSizeSearch&) = delete;
  BatchSizeSearch& operator=(const BatchSizeSearch&) = delete;

  std::int64_t batch_size() const { return batch_size_; }
  /// Runs the body once. Returns true if it fitted on all ranks. Otherwise frees everything and reduces the size.
  bool attempt(const std::function<void()>& body);

 private:
  struct Round;
  void go_down(std::int64_t proposed, int culprit);

  Accelerator& accelerator_;
  BatchSizeOptions options_;
  std::int64_t batch_size_;
  std::unique_ptr<Round> round_;
};

}  // namespace detail

/// Runs `body(batch_size)` with smaller and smaller batch sizes until no rank runs out of memory. Returns the body's
/// result, or the batch size if the body returns nothing. All ranks try the same sizes: if one is out of memory, all
/// reduce the size. Out of memory is recognised by type (std::bad_alloc, c10::OutOfMemoryError) or, as in Accelerate,
/// by message; other exceptions are thrown at once.
///
/// Between two attempts all prepared objects are released, as by free_memory(). The body must create and prepare its
/// models, optimizers and loaders itself. If a rank runs out of memory while others wait for it in a collective, it
/// releases them if the back end can: one rank, or ranks of one node, without ZeRO on devices and without debug mode.
/// Otherwise it waits for the others for `patience`, since they may run out of memory too, and then throws, because it
/// cannot release them. In MPI's own collectives (prepare, barriers, host values) they wait until the watchdog ends the
/// job. @collective
template <std::invocable<std::int64_t> Body>
auto find_executable_batch_size(Accelerator& accelerator, const BatchSizeOptions& options, Body&& body) {
  using Result = std::invoke_result_t<Body&, std::int64_t>;
  detail::BatchSizeSearch search(accelerator, options);
  if constexpr (std::is_void_v<Result>) {
    while (!search.attempt([&] { body(search.batch_size()); })) continue;
    return search.batch_size();
  } else {
    std::optional<Result> result;
    // Some ranks may have a result: drop it before the next attempt.
    while (!search.attempt([&] { result.emplace(body(search.batch_size())); })) result.reset();
    return Result(std::move(*result));
  }
}

}  // namespace hortator
