#include "comm/backends/backend_choice.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <ranges>
#include <stdexcept>

#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

// Null where the choice is left to us.
const Backend* requested_backend(const BackendRequest& request) {
  constexpr const char* automatic = "auto";
  const auto name = request.requested.value_or(automatic);
  if (name == automatic) return nullptr;
  const auto* const backend = find_backend(name);
  if (backend == nullptr) {
    auto known = backend_names();
    known.insert(known.begin(), automatic);
    throw UsageError({.what = text::concat("HORTATOR_COMMUNICATOR=", name, " is an unknown communicator"),
                      .why = "it decides how tensors travel between ranks",
                      .hint = "use " + text::join(known)});
  }
  if (backend->require != nullptr) backend->require(request);
  return backend;
}

const Backend& best_backend(const BackendRequest& request, const Backend* requested) {
  const c10::Device device(request.tensors);
  if (requested != nullptr && request.ranks > 1 && requested->traits.carries(device)) return *requested;
  for (const auto& backend : backends() | std::views::reverse) {
    if (backend.traits.carries(device) && backend.suits(request)) return backend;
  }
  throw std::logic_error("No back end suits a request");
}

}  // namespace

BackendChoice choose_backend(const BackendRequest& request) {
  const auto* const requested = requested_backend(request);
  const auto carries = [&](const Backend& backend) { return backend.traits.device == request.tensors; };
  const bool is_staged = request.ranks > 1 && request.tensors != c10::kCPU &&
                         (request.shares_devices || std::ranges::none_of(backends(), carries));
  auto carried = request;
  if (is_staged) carried.tensors = c10::kCPU;
  return {.backend = &best_backend(carried, requested), .is_staged = is_staged};
}

}  // namespace hortator::comm
