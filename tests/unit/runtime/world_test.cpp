#include "runtime/world.hpp"

#include <ATen/Parallel.h>

#include <cstdlib>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "mpi/native.hpp"
#include "support/catch.hpp"

using namespace hortator;
using runtime::World;

namespace {

/// Sets an environment variable for a while.
class With {
 public:
  With(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) before_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~With() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a part of the ranks can be a world, as a Fortran handle") {
  const auto all = mpi::Communicator::world();
  const auto half = all.split(all.rank() % 2, all.rank());
  const World world({.communicator = MPI_Comm_c2f(mpi::native(half))});
  CHECK(world.topology().size == half.size());
  CHECK(world.topology().rank == all.rank() / 2);
  CHECK(mpi::all_reduce(world.comm(), 1, mpi::Op::sum) == half.size());
}

TEST_CASE("worlds are created and destroyed, also two at a time") {
  for (int round = 0; round < 3; ++round) {
    const World one({});
    const World two({});
    CHECK(mpi::all_reduce(one.comm(), 1, mpi::Op::sum) == mpi::all_reduce(two.comm(), 1, mpi::Op::sum));
  }
}

TEST_CASE("LibTorch uses the world's number of threads") {
  {
    const With asked("OMP_NUM_THREADS", "3");
    const World world({});
    CHECK(world.threads().threads == 3);
    CHECK(at::get_num_threads() == 3);
  }
  const World world({});
  CHECK(at::get_num_threads() == world.threads().threads);
  CHECK_FALSE(world.cpus().empty());
}

TEST_CASE("HORTATOR_DEVICE selects the device, and all ranks throw where it differs") {
  const auto comm = mpi::Communicator::world();
  {
    const With cpu("HORTATOR_DEVICE", "cpu");
    CHECK(World({}).device() == c10::Device(c10::kCPU));
  }
  const auto where = [&](const std::string& others) {
    return comm.rank() == comm.size() - 1 ? others : std::string("cpu");
  };
  {
    const With odd("HORTATOR_DEVICE", where("abacus"));
    CHECK_THROWS_WITH(World({}),
                      ContainsSubstring("HORTATOR_DEVICE: expected cpu or cuda or rocm or xpu, got 'abacus'"));
  }
  {
    const With cuda("HORTATOR_DEVICE", where("cuda"));
    CHECK_THROWS_AS(World({.cpu = true}), Error);
  }
}
