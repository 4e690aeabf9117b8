#include "runtime/build_identity.hpp"

#include <torch/version.h>
#include <hortator/version.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("all ranks of this job run the same build") {
  const auto comm = mpi::Communicator::world();
  CHECK_NOTHROW(runtime::check_same_build(comm));
}

TEST_CASE("a rank of another build is named on all ranks") {
  const auto comm = mpi::Communicator::world();
  if (comm.size() == 1) return;
  const bool is_last = comm.rank() == comm.size() - 1;
  const auto identity = is_last ? "hortator 0.0.9 (build 00000000)" : "hortator 0.1.0 (build 2a2f4d8c)";
  CHECK_THROWS_WITH(runtime::check_same_build(comm, identity),
                    ContainsSubstring("The build") && ContainsSubstring("0.0.9 (build 00000000)") &&
                        ContainsSubstring("0.1.0 (build 2a2f4d8c)") &&
                        ContainsSubstring(text::concat("rank ", comm.size() - 1)));
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
