// Debug mode: collectives that ranks call from different source lines.
#include <cstdlib>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

struct DebugMode {
  DebugMode() { setenv("HORTATOR_DEBUG", "1", 1); }
  ~DebugMode() { unsetenv("HORTATOR_DEBUG"); }
};

template <typename Call>
std::string error_text(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void check_two_call_sites(const std::string& text) {
  INFO(text);
  CHECK(text.find("The ranks are in different collectives") != std::string::npos);
  const auto first = text.find("+0x");
  CHECK((first != std::string::npos && text.find("+0x", first + 1) != std::string::npos));
}

// Two calls that no compiler merges into one.
#define FROM_TWO_LINES(first, call)     \
  do {                                  \
    if (first) {                        \
      call;                             \
      asm volatile("# the first line"); \
    } else {                            \
      call;                             \
      asm volatile("# the other line"); \
    }                                   \
  } while (false)

}  // namespace

TEST_CASE("in debug mode, calls from different lines throw on all ranks, and the error has both lines") {
  const DebugMode debug_mode;
  Accelerator accelerator;
  if (accelerator.num_processes() == 1) return;
  const bool first = accelerator.is_main_process();
  const auto ones = at::ones({2});
  FROM_TWO_LINES(first, accelerator.wait_for_everyone());  // allowed: one rank may act before or after the others
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.reduce(ones)); }));
  const auto pair = std::tuple(ones, ones);
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.reduce(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.broadcast(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.pad_across_processes(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather_for_metrics(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather_for_metrics(ones, ones)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather_to_main(pair)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather_for_metrics_to_main(pair)); }));
  std::vector<std::string> names = {"a"};
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.gather_object(names)); }));
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.broadcast_object_list(names)); }));
  test::Net net;
  auto model = accelerator.prepare(net);
  const auto loss = model(at::ones({2, 3})).sum();
  check_two_call_sites(error_text([&] { FROM_TWO_LINES(first, accelerator.backward(loss)); }));
}

TEST_CASE("in debug mode, calls from one line succeed") {
  const DebugMode debug_mode;
  Accelerator accelerator;
  const auto ones = at::ones({2});
  test::Net net;
  auto model = accelerator.prepare(net);
  for (int pass = 0; pass < 3; ++pass) {
    accelerator.wait_for_everyone();
    CHECK(accelerator.reduce(ones)[0].item<double>() == accelerator.num_processes());
    CHECK(std::get<1>(accelerator.gather(std::tuple(ones, ones))).numel() == 2 * accelerator.num_processes());
    accelerator.backward(model(at::ones({2, 3})).sum());
    CHECK(accelerator.main_process_first([&] { return accelerator.process_index(); }) == accelerator.process_index());
  }
}
