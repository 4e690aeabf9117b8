#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <hortator/detail/batch_source.hpp>
#include <hortator/error.hpp>
#include <mutex>

#include "core/text/text.hpp"
#include "runtime/generator_state.hpp"

namespace hortator::data {
namespace {

std::string reason() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

std::string named(std::span<const std::int64_t> samples) {
  constexpr std::size_t max_named = 8;
  if (samples.size() == 1) return text::concat("sample ", samples[0]);
  const auto first = samples.first(std::min(samples.size(), max_named));
  const auto more = samples.size() - first.size();
  return text::concat("samples ", text::join(first), more > 0 ? text::concat(" and ", more, " more") : "");
}

[[noreturn]] void throw_problem(std::span<const std::int64_t> samples, std::string_view what) {
  std::throw_with_nested(Error({.what = text::concat(named(samples), what, reason())}));
}

}  // namespace

BatchSource::~BatchSource() = default;

void throw_unreadable(std::span<const std::int64_t> samples) {
  throw_problem(samples, " of the data set could not be read: ");
}

void throw_not_joined(std::span<const std::int64_t> samples) {
  throw_problem(samples, " could not be joined into a batch: ");
}

void throw_unknown_size() {
  throw UsageError({.what = "The data set does not know its size",
                    .why = "samples are distributed to the ranks by their number",
                    .hint = "let its size() return the number of samples"});
}

void throw_cannot_begin_again() {
  throw UsageError(
      {.what = "The stream cannot begin again",
       .why = "each loop over a loader is a pass over its data from the first sample on",
       .hint = "give the stream reset(), or set_epoch(std::int64_t), after which next() returns the first sample"});
}

void throw_cannot_travel() {
  throw UsageError({.what = "Batches of this type cannot be sent between ranks",
                    .why = "with dispatch_batches one rank of each node reads them for the others",
                    .hint = "make them hortator::Serializable, or set dispatch_batches to false"});
}

at::Tensor stack(std::span<const at::Tensor> tensors) {
  return at::stack(at::TensorList(tensors.data(), tensors.size()));
}

at::Tensor pinned(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() ? tensor.pin_memory() : tensor;
}

// A non-blocking copy is queued on the device's current stream, which is the one that will read the copy. LibTorch's
// allocator of page-locked memory reuses a block only after the copies from it are done.
at::Tensor placed(const at::Tensor& tensor, const Placement& placement) {
  return tensor.defined() ? tensor.to(placement.device, placement.non_blocking) : tensor;
}

namespace {

void seed_generator(at::Generator generator, std::uint64_t seed) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

void with_seed(std::uint64_t seed, const std::function<void()>& draw) {
  const auto generator = runtime::default_generator(c10::kCPU);
  const auto state = runtime::generator_state(generator);
  seed_generator(generator, seed);
  std::exception_ptr problem;
  try {
    draw();
  } catch (...) {
    problem = std::current_exception();
  }
  runtime::set_generator_state(generator, state);
  if (problem) std::rethrow_exception(problem);
}

}  // namespace hortator::data
