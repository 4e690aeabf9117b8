#include "comm/backend.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using comm::Backend;
using comm::BackendRequest;
using comm::choose_backend;

TEST_CASE("the back end follows from where the tensors and the ranks are") {
  CHECK(choose_backend({}) == Backend::self);
  CHECK(choose_backend({.on_cuda = true}) == Backend::self);
  CHECK(choose_backend({.ranks = 4, .largest_node = 1}) == Backend::mpi);
  CHECK(choose_backend({.ranks = 4, .largest_node = 2}) == Backend::node);
  CHECK(choose_backend({.on_cuda = true, .has_nccl = true, .ranks = 4, .largest_node = 4}) == Backend::nccl);
  const BackendRequest sharing{
      .on_cuda = true, .has_nccl = true, .shares_devices = true, .ranks = 4, .largest_node = 4};
  CHECK(choose_backend(sharing) == Backend::staged);
  CHECK(choose_backend({.has_nccl = true, .shares_devices = true, .ranks = 4, .largest_node = 4}) == Backend::node);
}

TEST_CASE("what is asked for is taken") {
  CHECK(choose_backend({.asked = "auto", .ranks = 2, .largest_node = 2}) == Backend::node);
  CHECK(choose_backend({.asked = "mpi", .ranks = 2, .largest_node = 2}) == Backend::mpi);
  CHECK(choose_backend({.asked = "node", .ranks = 2, .largest_node = 1}) == Backend::node);
  CHECK(choose_backend({.asked = "nccl", .on_cuda = true, .has_nccl = true, .ranks = 2}) == Backend::nccl);
  // Asked for, NCCL is for the CUDA tensors of a run; its CPU tensors go their way.
  CHECK(choose_backend({.asked = "nccl", .has_cuda_tensors = true, .has_nccl = true, .ranks = 2, .largest_node = 2}) ==
        Backend::node);
  // CPU tensors of a GPU run are what mpi and node are for; its CUDA tensors go by NCCL all the same.
  CHECK(choose_backend({.asked = "mpi", .on_cuda = true, .has_nccl = true, .ranks = 2}) == Backend::nccl);
}

TEST_CASE("what cannot be had is an error that says why") {
  CHECK_THROWS_WITH(choose_backend({.asked = "ncll"}), ContainsSubstring("did you mean 'nccl'?"));
  CHECK_THROWS_WITH(choose_backend({.asked = "nccl", .on_cuda = true, .ranks = 2}),
                    ContainsSubstring("built without NCCL") && ContainsSubstring("HORTATOR_WITH_CUDA=ON"));
  CHECK_THROWS_WITH(choose_backend({.asked = "nccl", .on_cuda = true, .has_nccl = true, .shares_devices = true}),
                    ContainsSubstring("HORTATOR_SHARE_DEVICES=1"));
  CHECK_THROWS_WITH(choose_backend({.asked = "nccl", .has_nccl = true, .ranks = 2}),
                    ContainsSubstring("the ranks work on the CPU"));
}
