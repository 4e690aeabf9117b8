#include "bench/collective_cases.hpp"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "comm/backends/registry.hpp"
#include "comm/decorators/checked_communicator.hpp"
#include "core/text/text.hpp"

namespace hortator::bench {

using comm::Communicator;
using comm::ReduceOp;

std::vector<CollectiveCase> collective_cases(Communicator& comm, std::int64_t elements, at::ScalarType type) {
  const int n = comm.size();
  const auto share = elements / n;
  const double ring = n > 1 ? (n - 1.0) / n : 1;
  auto window = comm.allocate(elements, type).fill_(1);
  auto common = comm.allocate_common(elements, type).fill_(1);
  auto own = at::ones({elements}, type);
  auto part = at::ones({share}, type);
  const auto wait = [](comm::Work work) { work.wait(); };
  return {
      {"all_reduce", "window", [=, &comm] { wait(comm.all_reduce(window, ReduceOp::mean)); }, 2 * ring},
      {"all_reduce", "own", [=, &comm] { wait(comm.all_reduce(own, ReduceOp::mean)); }, 2 * ring},
      {"reduce_scatter", "window", [=, &comm] { wait(comm.reduce_scatter(part, window, ReduceOp::mean)); }, ring},
      {"reduce_scatter", "own", [=, &comm] { wait(comm.reduce_scatter(part, own, ReduceOp::mean)); }, ring},
      {"all_gather", "common",
       [=, &comm] { wait(comm.all_gather(common, common.narrow(0, comm.rank() * share, share))); }, ring},
      {"all_gather", "window", [=, &comm] { wait(comm.all_gather(window, part)); }, ring},
      {"all_gather", "own", [=, &comm] { wait(comm.all_gather(own, part)); }, ring},
      {"broadcast", "own", [=, &comm] { wait(comm.broadcast(own, 0)); }, 1},
  };
}

namespace {

// One rank, whose back end is `self`, sends nothing.
bool is_measurable(const comm::Backend& backend) { return backend.name != "self" && backend.traits.carries(at::kCPU); }

std::vector<std::string_view> measurable_backends() {
  std::vector<std::string_view> names;
  for (const auto& backend : comm::backends()) {
    if (is_measurable(backend)) names.push_back(backend.name);
  }
  return names;
}

}  // namespace

std::unique_ptr<Communicator> communicator_named(const std::string& backend, const mpi::Communicator& world) {
  constexpr std::string_view debug_mode = " in debug mode";
  const bool is_checked = backend.ends_with(debug_mode);
  const auto name = is_checked ? backend.substr(0, backend.size() - debug_mode.size()) : backend;
  const auto* const known = comm::find_backend(name);
  if (known == nullptr || !is_measurable(*known)) {
    throw UsageError({.what = text::concat("--backend ", backend, " cannot be measured on CPU tensors"),
                      .hint = text::concat("known are ", text::join(measurable_backends()),
                                           "; add ' in debug mode' to measure one with checks")});
  }
  auto made = known->make(world, at::kCPU, std::chrono::minutes(10));
  if (!is_checked) return made;
  return std::make_unique<comm::CheckedCommunicator>(std::move(made), world.duplicate());
}

at::ScalarType type_named(const std::string& name) {
  const std::vector<std::pair<std::string, at::ScalarType>> known = {{"float32", at::kFloat},
                                                                     {"float64", at::kDouble},
                                                                     {"float16", at::kHalf},
                                                                     {"bfloat16", at::kBFloat16},
                                                                     {"int32", at::kInt}};
  std::vector<std::string> names;
  for (const auto& [key, type] : known) {
    if (key == name) return type;
    names.push_back(key);
  }
  throw UsageError(
      {.what = text::concat("--type: unknown type ", text::quote(name)), .hint = text::suggestion(name, names)});
}

int steps_for(std::int64_t bytes, int max) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 27) / bytes, std::min(2, max), max));
}

std::int64_t elements_of(std::int64_t bytes, at::ScalarType type, int ranks) {
  const auto elements = bytes / static_cast<std::int64_t>(at::elementSize(type));
  return std::max<std::int64_t>(elements / ranks, 1) * ranks;
}

}  // namespace hortator::bench
