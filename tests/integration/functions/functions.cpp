// Launches functions on ranks: `functions CASE`. Prints results to standard output, for functions.sh.
#include <hortator/hortator.hpp>
#include <iostream>
#include <string>

using namespace hortator;

namespace {

int answer = 0;

void add_up() {
  Accelerator accelerator;
  const auto sum = accelerator.reduce(at::ones({1}) * (accelerator.process_index() + 1));
  answer = sum.item<int>();
  if (accelerator.is_main_process()) {
    std::cout << "sum over " << accelerator.num_processes() << " is " << sum.item<double>() << std::endl;
  }
}

void fail_on_rank_1() {
  const State state;
  if (state.process_index() == 1) throw Error({.what = "rank 1 has had enough"});
}

void fail_on_the_last_rank() {
  const State state;
  if (state.process_index() + 1 == state.num_processes()) throw Error({.what = "the last rank has had enough"});
}

void try_case(const std::string& name) {
  if (name == "twice") {
    launch(2, add_up);
    launch(3, add_up);
    std::cout << "here the answer is " << answer << std::endl;
  }
  if (name == "four") launch(4, add_up);
  if (name == "four_fail") launch(4, fail_on_the_last_rank);
  if (name == "fails") launch(2, fail_on_rank_1);
  if (name == "in_a_rank") launch(2, [] { launch(2, add_up); });
  if (name == "none") launch(0, add_up);
  if (name == "after_mpi") {
    const State state;
    launch(2, add_up);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    try_case(argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    std::cout << "refused: " << error.what() << std::endl;
    return 9;
  }
}
