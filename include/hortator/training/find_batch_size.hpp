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

/// Of find_executable_batch_size.
struct BatchSizeOptions {
  std::int64_t start = 128;
  /// What to try after `batch_size`; by default nine tenths of it, rounded down, as the reference.
  std::function<std::int64_t(std::int64_t batch_size)> next = {};
  /// How long a rank that is out of memory waits for the others where it cannot free them from a collective: see below.
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
  /// Runs the body once. True if it fitted on all ranks; otherwise everything is freed and the size is smaller.
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

/// Runs `body(batch_size)`, with a smaller batch size each time that a rank runs out of memory, until it fits; returns
/// what the body returns, or the batch size when that is nothing. All ranks try the same sizes: when one is out of
/// memory, all go down together. What runs out of memory is known by its type (std::bad_alloc, c10::OutOfMemoryError)
/// or, as in the reference, by its words; other exceptions leave at once.
///
/// Between two tries everything prepared is forgotten, as by free_memory(): the body makes its models, optimizers and
/// loaders itself, and prepares them. A rank that runs out while others wait for it in a collective frees them where
/// the back end can: one rank, or ranks of one node, without ZeRO on devices and without debug mode. Where it cannot,
/// it waits for the others as long as the patience lasts, since they may run out as well, and then throws: nobody can
/// call them back. In MPI's own collectives (prepare, barriers, host values) they wait until the watchdog ends the job.
/// @collective
template <std::invocable<std::int64_t> Body>
auto find_executable_batch_size(Accelerator& accelerator, const BatchSizeOptions& options, Body&& body) {
  using Result = std::invoke_result_t<Body&, std::int64_t>;
  detail::BatchSizeSearch search(accelerator, options);
  if constexpr (std::is_void_v<Result>) {
    while (!search.attempt([&] { body(search.batch_size()); })) continue;
    return search.batch_size();
  } else {
    std::optional<Result> result;
    // A result that was made by some ranks only goes before the next try.
    while (!search.attempt([&] { result.emplace(body(search.batch_size())); })) result.reset();
    return Result(std::move(*result));
  }
}

}  // namespace hortator
