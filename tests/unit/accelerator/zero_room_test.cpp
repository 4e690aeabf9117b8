// Training in less memory than the parameters and moments take. Alone in its program: what others have freed would be
// room.
#include <sys/resource.h>
#include <torch/nn/modules/container/sequential.h>

#include <array>
#include <fstream>
#include <optional>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "zero_fixture.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 1024;
constexpr int layers = 16;

/// While it lives this process can take `more` bytes of memory of its own, and no more.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t more) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit limit = {.rlim_cur = private_bytes() + more, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_DATA, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  static rlim_t private_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      rlim_t kib = 0;
      if (word == "VmData:" && status >> kib) return kib * 1024;
    }
    return 0;
  }

  rlimit before_{};
};

torch::nn::Sequential make_net() {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i)
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
  return net;
}

}  // namespace

TEST_CASE("parameters and moments on disk need no memory but that of their pages") {
  // Of 192 MB: pages, a gradient on its way, a batch. Gradients stay in memory, each rank's share of them.
  const rlim_t room = (rlim_t{48} << 20) + layers * width * width * 4 / static_cast<rlim_t>(State().num_processes());
  std::array<std::vector<double>, 2> losses;
  for (const bool on_disk : {true, false}) {  // first, while the C library has kept nothing
    const test::Folder folder(State(), "zero_memory");
    const std::filesystem::path place = on_disk ? folder.path() : "";
    Accelerator accelerator({.ddp = {.bucket_cap_mb = 4},
                             .zero = {.stage = 3,
                                      .offload_optimizer = place,
                                      .offload_parameters = place,
                                      .resident_bytes = on_disk ? std::uint64_t{16} << 20 : 0}});
    at::manual_seed(1);
    auto net = make_net();
    torch::optim::AdamW adamw(net->parameters(), 1e-3);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    std::optional<MemoryLimit> limit;
    if (on_disk) {
      limit.emplace(room);
      CHECK_THROWS(at::empty({3 * layers, width, width}));  // the limit works: they would not fit
    }
    for (int step = 0; step < 2; ++step) {
      const auto loss = model(at::ones({4, width}) * (accelerator.process_index() + 1)).square().mean();
      losses[on_disk ? 1 : 0].push_back(loss.item<double>());
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
    limit.reset();
    accelerator.wait_for_everyone();
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0][1] != losses[0][0]);  // it has stepped
}
