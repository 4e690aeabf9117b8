#include "comm/nccl/version.hpp"

#include "backends.hpp"

using namespace hortator;

TEST_CASE("an NCCL is accepted that has the same major version and is not older") {
  CHECK_NOTHROW(comm::check_nccl_version(22809, {22809, "a"}));
  CHECK_NOTHROW(comm::check_nccl_version(22809, {23007, "a"}));
  CHECK_THROWS_WITH(comm::check_nccl_version(23007, {22809, "/opt/libnccl.so.2"}),
                    ContainsSubstring("loaded is 2.28.9 (/opt/libnccl.so.2)") &&
                        ContainsSubstring("built with 2.30.7") && ContainsSubstring("LD_LIBRARY_PATH"));
  CHECK_THROWS_WITH(comm::check_nccl_version(23007, {30000, "a"}), ContainsSubstring("loaded is 3.0.0"));
}

TEST_CASE("the loaded NCCL is found") {
  const auto loaded = comm::loaded_nccl();
  CHECK(loaded.version == NCCL_VERSION_CODE);
  CHECK_THAT(loaded.file, ContainsSubstring("test_nccl"));  // the mock's place
}
