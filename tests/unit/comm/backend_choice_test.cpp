#include "comm/backends/backend_choice.hpp"

#include <hortator/error.hpp>
#include <string>

#include "support/catch.hpp"

using namespace hortator;
using comm::BackendRequest;
using comm::choose_backend;

namespace {

std::string chosen(const BackendRequest& request) {
  const auto [backend, is_staged] = choose_backend(request);
  return (is_staged ? "staged " : "") + std::string(backend->name);
}

}  // namespace

TEST_CASE("the back end is chosen by the tensors' device and the ranks' nodes") {
  CHECK(chosen({}) == "self");
  CHECK(chosen({.tensors = c10::kCUDA}) == "self");
  CHECK(chosen({.tensors = c10::kCUDA, .shares_devices = true}) == "self");
  CHECK(chosen({.ranks = 4, .largest_node = 1}) == "mpi");
  CHECK(chosen({.ranks = 4, .largest_node = 2}) == "node");
  CHECK(chosen({.tensors = c10::kCUDA, .accelerator = c10::kCUDA, .ranks = 4, .largest_node = 4}) == "nccl");
  BackendRequest sharing{
      .tensors = c10::kCUDA, .accelerator = c10::kCUDA, .shares_devices = true, .ranks = 4, .largest_node = 4};
  CHECK(chosen(sharing) == "staged node");
  sharing.requested = "mpi";
  CHECK(chosen(sharing) == "staged mpi");
  CHECK(chosen({.accelerator = c10::kCUDA, .shares_devices = true, .ranks = 4, .largest_node = 4}) == "node");
}

TEST_CASE("tensors of a kind of device that no back end carries are staged") {
  for (const auto type : {c10::kXPU, c10::kPrivateUse1, c10::kMPS}) {
    for (const bool shares : {false, true}) {
      BackendRequest request{.tensors = type, .accelerator = type, .sees_devices = true, .shares_devices = shares};
      CHECK(chosen(request) == "self");
      request.ranks = 4;
      CHECK(chosen(request) == "staged mpi");
      request.largest_node = 2;
      CHECK(chosen(request) == "staged node");
      request.requested = "mpi";
      CHECK(chosen(request) == "staged mpi");
      request.requested = "nccl";
      CHECK_THROWS_WITH(choose_backend(request), ContainsSubstring("built without NCCL"));
    }
  }
}

TEST_CASE("the requested back end is chosen where it carries the tensors") {
  CHECK(chosen({.requested = "auto", .ranks = 2, .largest_node = 2}) == "node");
  CHECK(chosen({.requested = "mpi", .ranks = 2, .largest_node = 2}) == "mpi");
  CHECK(chosen({.requested = "node", .ranks = 2, .largest_node = 1}) == "node");
  CHECK(chosen({.requested = "node", .ranks = 1}) == "self");
  CHECK(chosen({.requested = "nccl", .tensors = c10::kCUDA, .accelerator = c10::kCUDA, .ranks = 2}) == "nccl");
  // A request for nccl concerns the CUDA tensors of a run; its CPU tensors are carried as without it.
  CHECK(chosen({.requested = "nccl", .accelerator = c10::kCUDA, .sees_devices = true, .ranks = 2, .largest_node = 2}) ==
        "node");
  // A request for mpi or node concerns the CPU tensors of a GPU run; NCCL still carries its CUDA tensors.
  CHECK(chosen({.requested = "mpi", .tensors = c10::kCUDA, .accelerator = c10::kCUDA, .ranks = 2}) == "nccl");
}

TEST_CASE("a back end that cannot be used is refused with the reason") {
  CHECK_THROWS_WITH(choose_backend({.requested = "ncll"}), ContainsSubstring("use auto, self, mpi, node, nccl"));
  CHECK_THROWS_WITH(choose_backend({.requested = "self", .ranks = 2}), ContainsSubstring("the run has 2 ranks"));
  CHECK(chosen({.requested = "self"}) == "self");
  CHECK_THROWS_WITH(choose_backend({.requested = "nccl", .tensors = c10::kCUDA, .ranks = 2}),
                    ContainsSubstring("built without NCCL") && ContainsSubstring("HORTATOR_WITH_CUDA=ON"));
  CHECK_THROWS_WITH(
      choose_backend({.requested = "nccl", .tensors = c10::kCUDA, .accelerator = c10::kCUDA, .shares_devices = true}),
      ContainsSubstring("HORTATOR_SHARE_DEVICES=1"));
  CHECK_THROWS_WITH(choose_backend({.requested = "nccl", .accelerator = c10::kCUDA, .ranks = 2}),
                    ContainsSubstring("the ranks work on the CPU"));
}
