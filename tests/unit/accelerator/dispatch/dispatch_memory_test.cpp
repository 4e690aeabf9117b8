// Bytes that dispatching reads and holds, as the system counts them.
#include <malloc.h>
#include <sys/resource.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <fstream>
#include <hortator/hortator.hpp>
#include <optional>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

namespace hortator {
namespace {

constexpr std::int64_t wide_layer = 1024;
constexpr int tall_stack = 48;
constexpr std::uint64_t layer_bytes = (wide_layer + 1) * wide_layer * 4;
constexpr std::uint64_t stack_bytes = tall_stack * layer_bytes;  // 192 MiB
constexpr std::uint64_t allowed_bytes = stack_bytes / 4;

torch::nn::Sequential tall_net() {
  torch::nn::Sequential net;
  for (int i = 0; i < tall_stack; ++i) net->push_back(torch::nn::Linear(wide_layer, wide_layer));
  return net;
}

/// "Name:   123 kB" of /proc/self/status, or "name: 123" of another file.
std::uint64_t number_in(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string field; in >> field;) {
    std::uint64_t number = 0;
    if (field == name && in >> number) return number;
  }
  FAIL(name << " is not in " << file);
  return 0;
}

std::uint64_t status_bytes(const std::string& name) { return 1024 * number_in("/proc/self/status", name); }
std::uint64_t bytes_read() { return number_in("/proc/self/io", "rchar:"); }

/// Resets the peak of this process's resident memory, VmHWM.
void reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  REQUIRE(clear.good());
}

/// For its lifetime, limits the private memory that this process can allocate in addition.
class DataLimit {
 public:
  explicit DataLimit(std::uint64_t more) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit limit = {.rlim_cur = status_bytes("VmData:") + more, .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
  }
  ~DataLimit() { setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

 private:
  rlimit before_{};
};

/// A stack of layers stored in a file, and its output.
struct TallCase {
  TallCase() : folder(accelerator, "dispatch_memory") {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);  // freed memory returns to the system
    const at::NoGradGuard no_grad;
    at::manual_seed(23);
    auto net = tall_net();
    expected = net->forward(input);
    accelerator.save_model(net, folder.path());
  }

  Accelerator accelerator{{.cpu = true}};
  test::Folder folder;
  at::Tensor input = at::linspace(-1, 1, wide_layer).view({1, wide_layer});
  at::Tensor expected;
};

constexpr std::uint64_t thread_stack_bytes = std::uint64_t{12} << 20;

}  // namespace

TEST_CASE("a model four times as large as the allowed memory computes bitwise the same as when it is resident",
          "[dispatch]") {
  TallCase stack;
  const at::NoGradGuard no_grad;
  const auto run = [&] {
    auto net = init_empty_weights(tall_net);
    auto model =
        load_checkpoint_and_dispatch(stack.accelerator, net, stack.folder.path(),
                                     {.max_memory = {{DevicePlacement::cpu(), static_cast<Bytes>(allowed_bytes)}}});
    for (int pass = 0; pass < 3; ++pass) CHECK(at::equal(model(stack.input), stack.expected));
    return model.counters();
  };
  run();  // so that the memory of code and libraries is not measured below

  malloc_trim(0);
  const auto before = status_bytes("VmRSS:");
  reset_peak();
  {
    const DataLimit limit(allowed_bytes * 105 / 100 + thread_stack_bytes);
    CHECK_THROWS(at::empty({static_cast<std::int64_t>(stack_bytes)}, at::kByte));  // the limit works
    const auto counters = run();
    CHECK(counters.in_memory + counters.on_disk == stack_bytes);
    CHECK(counters.in_memory > allowed_bytes / 2);
    CHECK(counters.in_memory + counters.peak_page_bytes <= allowed_bytes);
  }
  const auto peak = status_bytes("VmHWM:") - before;
  INFO("the peak is " << peak << " bytes of " << allowed_bytes);
  CHECK(peak <= allowed_bytes * 105 / 100);
  CHECK(peak > allowed_bytes / 2);
}

TEST_CASE("loading reads only the resident part, and each byte once", "[dispatch]") {
  TallCase stack;
  const at::NoGradGuard no_grad;
  constexpr std::uint64_t small_reads = 128 << 10;  // the header, and the system's files about memory
  auto net = init_empty_weights(tall_net);
  const auto before = bytes_read();
  auto model = std::make_optional(
      load_checkpoint_and_dispatch(stack.accelerator, net, stack.folder.path(),
                                   {.max_memory = {{DevicePlacement::cpu(), static_cast<Bytes>(allowed_bytes)}}}));
  const auto loaded = bytes_read();
  const auto counters = model->counters();
  CHECK(loaded - before >= counters.in_memory);
  CHECK(loaded - before <= counters.in_memory + small_reads);
  CHECK(at::equal((*model)(stack.input), stack.expected));
  model.reset();  // waits for pending reads: two layers of the next pass are requested already
  const auto read = bytes_read() - loaded;
  const auto requested = counters.on_disk + 2 * layer_bytes;
  CHECK(read >= requested);
  CHECK(read <= requested + small_reads);
}

}  // namespace hortator
