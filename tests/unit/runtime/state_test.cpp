#include <chrono>
#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/state.hpp>
#include <thread>

#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

using namespace hortator;

TEST_CASE("the process facts") {
  const auto comm = mpi::Communicator::world();
  const State state;
  CHECK(state.process_index() == comm.rank());
  CHECK(state.num_processes() == comm.size());
  CHECK(state.local_process_index() == comm.rank());
  CHECK(state.num_nodes() == 1);
  CHECK(state.is_main_process() == (comm.rank() == 0));
  CHECK(state.is_local_main_process() == (comm.rank() == 0));
  CHECK(state.is_last_process() == (comm.rank() == comm.size() - 1));
  CHECK(state.host() == mpi::host_name());
  CHECK(state.distributed_type() == (comm.size() == 1           ? DistributedType::no
                                     : state.device().is_cuda() ? DistributedType::multi_gpu
                                                                : DistributedType::multi_cpu));
  CHECK(State({.cpu = true}).device() == c10::Device(c10::kCPU));
  state.wait_for_everyone();
}

TEST_CASE("copies share one world, and a state outlives the one that it came from") {
  std::optional<State> first;
  first.emplace();
  const State copy = *first;
  CHECK(&copy.world() == &first->world());
  first.reset();
  CHECK(copy.num_processes() == mpi::Communicator::world().size());
  copy.wait_for_everyone();
}

TEST_CASE("no rank leaves wait_for_everyone before the last has entered it") {
  const State state;
  const auto now = []() -> std::int64_t { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  if (state.is_last_process()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto entered = now();  // by the clock of the machine, which its processes share
  state.wait_for_everyone();
  const auto left = now();
  CHECK(left >= mpi::all_reduce(state.world().comm(), entered, mpi::Op::max));
}

TEST_CASE("print is once a machine, with one newline") {
  const State state;
  CHECK(test::written_to(STDOUT_FILENO, [&] { state.print("loss ", 0.5, ", step ", 3); }) ==
        (state.is_local_main_process() ? "loss 0.5, step 3\n" : ""));
}

TEST_CASE("work for one process is done there and nowhere else") {
  const State state;
  const int n = state.num_processes();
  std::vector<int> done(5);
  state.on_main_process([&] { ++done[0]; });
  state.on_local_main_process([&] { ++done[1]; });
  state.on_process(n - 1, [&] { ++done[2]; });
  state.on_last_process([&] { ++done[3]; });
  state.on_local_process(n - 1, [&] { ++done[4]; });
  const bool last = state.is_last_process();
  CHECK(done == std::vector<int>{state.is_main_process(), state.is_local_main_process(), last, last, last});
}

TEST_CASE("work for one process gives its result there and nothing elsewhere") {
  const State state;
  const auto result = state.on_last_process([] { return std::make_unique<int>(7); });
  CHECK(result.has_value() == state.is_last_process());
  if (result) CHECK(**result == 7);
  CHECK_THROWS_WITH(state.on_process(state.process_index(), [] { throw std::runtime_error("no disk"); }),
                    ContainsSubstring("no disk"));
}

TEST_CASE("the main process is first, and every process has its own result") {
  const State state;
  const auto& comm = state.world().comm();
  int order = 0;
  const auto result = state.main_process_first([&] {
    order = state.is_main_process() ? 1 : 2;
    return std::make_unique<int>(state.process_index());
  });
  CHECK(*result == state.process_index());
  CHECK(order == (state.is_main_process() ? 1 : 2));
  state.local_main_process_first([&] { ++order; });
  CHECK(order == (state.is_main_process() ? 2 : 3));

  // The others begin only after the main process has ended: it sees none of them, they see it.
  int begun = 0;
  state.main_process_first([&] {
    if (!state.is_main_process()) begun = 1;
  });
  CHECK(mpi::all_reduce(comm, begun, mpi::Op::sum) == comm.size() - 1);
}

TEST_CASE("an exception of the first ends all, and the others do not begin") {
  const State state;
  int begun = 0;
  CHECK_THROWS_WITH(state.main_process_first([&] {
    ++begun;
    if (state.is_main_process()) throw std::runtime_error("no cache");
  }),
                    ContainsSubstring("no cache"));
  CHECK(begun == (state.is_main_process() ? 1 : 0));
  if (state.num_processes() == 1) return;
  CHECK_THROWS_WITH(state.main_process_first([&] {
    if (state.is_last_process()) throw std::runtime_error("no disk");
  }),
                    ContainsSubstring("no disk"));
}
