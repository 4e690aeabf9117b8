#include "runtime/build_identity.hpp"

#include <torch/version.h>
#include <hortator/version.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("all ranks of this job run the same build") {
  const auto comm = mpi::Communicator::world();
  CHECK_NOTHROW(runtime::check_same_build(comm));
}

TEST_CASE("the identity names versions and the build") {
  CHECK(runtime::libtorch_version() == TORCH_VERSION);
  CHECK_THAT(runtime::build_identity(),
             ContainsSubstring("hortator " HORTATOR_VERSION) && ContainsSubstring("LibTorch " TORCH_VERSION));
#ifdef __linux__
  CHECK_THAT(runtime::build_identity(), ContainsSubstring(" (build "));
#endif
}
