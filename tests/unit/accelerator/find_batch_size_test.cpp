#include <new>

#include "accelerator/batch_size/out_of_memory.hpp"
#include "comm/abandoned.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

[[noreturn]] void run_out() { throw std::bad_alloc(); }

bool is_memory(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return accelerator::is_out_of_memory(std::current_exception());
  }
  return false;
}

// One step of a small model that is prepared from scratch.
double train_one_step(Accelerator& accelerator, std::int64_t batch_size, const std::function<void()>& before_backward) {
  test::Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, loader] = accelerator.prepare(
      net, sgd, data_loader(test::Rows{batch_size * accelerator.num_processes()}, {.batch_size = batch_size}));
  double last = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (auto& batch : loader) {
      const auto loss = (model(batch.data) - batch.target).square().mean();
      if (pass == 2) before_backward();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      last = loss.item<double>();
    }
  }
  return last;
}

// Ranks that have gone on are in a sum over normalisation layers by now.
struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    hidden = register_module("hidden", torch::nn::Linear(3, 4));
    norm = register_module("norm", SyncBatchNorm1d(4));
    out = register_module("out", torch::nn::Linear(4, 1));
  }
  at::Tensor forward(const at::Tensor& x) { return out(norm(hidden(x))); }
  torch::nn::Linear hidden{nullptr};
  SyncBatchNorm1d norm{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Normed);

}  // namespace

TEST_CASE("the sizes are those of Accelerate, and the result is the body's") {
  Accelerator accelerator;
  std::vector<std::int64_t> tried;
  const auto result = find_executable_batch_size(accelerator, {.start = 20}, [&](std::int64_t batch_size) {
    tried.push_back(batch_size);
    if (batch_size > 14) run_out();
    return std::make_unique<std::string>("fits");
  });
  CHECK(*result == "fits");
  CHECK(tried == std::vector<std::int64_t>{20, 18, 16, 14});
  const auto halves = [](std::int64_t size) { return size / 2; };
  const auto found =
      find_executable_batch_size(accelerator, {.start = 20, .next = halves}, [](std::int64_t batch_size) {
        if (batch_size > 5) run_out();
      });
  CHECK(found == 5);
}

TEST_CASE("what is out of memory, by type and by words") {
  CHECK(is_memory([] { run_out(); }));
  CHECK(is_memory([] { at::empty({std::int64_t{1} << 55}); }));
  CHECK(is_memory([] { throw std::runtime_error("HIP out of memory. Tried to allocate 2 GiB"); }));
  CHECK(is_memory([] {
    try {
      run_out();
    } catch (...) {
      std::throw_with_nested(std::runtime_error("sample 3 cannot be read"));
    }
  }));
  CHECK_FALSE(is_memory([] { throw std::runtime_error("out of luck"); }));
  CHECK_FALSE(is_memory([] { throw std::runtime_error("Out Of Memory."); }));
  CHECK_FALSE(is_memory([] { at::ones({2}).view({3}); }));
  CHECK_FALSE(is_memory([] { throw 3; }));
}

TEST_CASE("one rank out of memory takes all down to the same size") {
  Accelerator accelerator;
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    std::vector<std::int64_t> tried;
    const auto found = find_executable_batch_size(accelerator, {.start = 10}, [&](std::int64_t batch_size) {
      tried.push_back(batch_size);
      if (batch_size > 8 && accelerator.process_index() == rank) run_out();
    });
    CHECK(found == 8);
    CHECK(tried == std::vector<std::int64_t>{10, 9, 8});
  }
  CHECK(accelerator.gather(at::ones({1})).numel() == accelerator.num_processes());
}

TEST_CASE("ranks that wait in a collective for one that is out of memory are freed") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  int freed = 0;
  const auto sum = find_executable_batch_size(accelerator, {.start = 10}, [&](std::int64_t batch_size) {
    if (batch_size > 8 && accelerator.is_last_process()) run_out();
    try {
      return accelerator.reduce(at::full({1000}, batch_size))[999].item<double>();
    } catch (const comm::Abandoned&) {
      ++freed;
      throw;
    }
  });
  CHECK(sum == 8 * n);
  CHECK(freed == (accelerator.is_last_process() ? 0 : 2));
}

TEST_CASE("a rank that runs out of memory in the middle of a training step takes all down, and training works then") {
  Accelerator accelerator;
  const auto last = accelerator.num_processes() - 1;
  for (const int rank : {0, last}) {
    const auto loss = find_executable_batch_size(accelerator, {.start = 5}, [&](std::int64_t batch_size) {
      return train_one_step(accelerator, batch_size, [&] {
        if (batch_size > 3 && accelerator.process_index() == rank) run_out();
      });
    });
    CHECK(std::isfinite(loss));
  }
}

TEST_CASE("ranks that wait for a layer's statistics are freed from one that is out of memory") {
  Accelerator accelerator;
  const auto sum = find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t batch_size) {
    Normed net;
    auto model = accelerator.prepare(net);
    const auto input = at::ones({batch_size, 3}) * accelerator.process_index();
    model(input);
    if (batch_size > 2 && accelerator.is_last_process()) run_out();
    return model(input).sum().item<double>();
  });
  CHECK(std::isfinite(sum));
}

TEST_CASE("ranks that wait for their group, or for its replicas, are freed from one that is out of memory") {
  const int ranks = State().num_processes();
  const int group = ranks % 2 == 0 ? ranks / 2 : 1;
  for (const int stage : {1, 2, 3}) {
    Accelerator accelerator({.zero = {.stage = stage, .shard_group = group}});
    const auto loss = find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t batch_size) {
      return train_one_step(accelerator, batch_size, [&] {
        if (batch_size > 2 && accelerator.is_last_process()) run_out();
      });
    });
    INFO("stage " << stage);
    CHECK(std::isfinite(loss));
  }
}

TEST_CASE("what was prepared is forgotten between two tries") {
  Accelerator accelerator;
  test::Net net;
  auto model = accelerator.prepare(net);
  find_executable_batch_size(accelerator, {.start = 2}, [&](std::int64_t batch_size) {
    if (batch_size == 2) run_out();
    CHECK_THROWS_WITH(model(at::ones({1, 3})), ContainsSubstring("had freed it"));
  });
}

TEST_CASE("when nothing fits all ranks say so, and searches that would not end are refused") {
  Accelerator accelerator;
  const auto never = [](std::int64_t) { run_out(); };
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 3}, never),
                    ContainsSubstring("No batch size fits into memory, from 3 down"));
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 0}, never), ContainsSubstring("No batch size"));
  const auto same = [](std::int64_t size) { return size; };
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 3, .next = same}, never),
                    ContainsSubstring("next(3) is 3"));
}

TEST_CASE("other exceptions leave with their type") {
  Accelerator accelerator;
  int tries = 0;
  CHECK_THROWS_AS(find_executable_batch_size(accelerator, {.start = 3},
                                             [&](std::int64_t) {
                                               ++tries;
                                               throw std::domain_error("no data");
                                             }),
                  std::domain_error);
  CHECK(tries == 1);
}
