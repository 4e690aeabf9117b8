#include <new>

#include "accelerator/batch_size/out_of_memory.hpp"
#include "comm/abandoned.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

[[noreturn]] void throw_out_of_memory() { throw std::bad_alloc(); }

bool counts_as_out_of_memory(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return accelerator::is_out_of_memory(std::current_exception());
  }
  return false;
}

// Prepares a small model and trains three passes. Returns the last loss.
double train_three_passes(Accelerator& accelerator, std::int64_t batch_size,
                          const std::function<void()>& before_backward) {
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

// While one rank runs out of memory, the others are in the sum of this model's batch statistics.
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

TEST_CASE("a message about memory counts only in a runtime error, as in Accelerate") {
  for (const auto* message : {"HIP out of memory. Tried to allocate 64.00 GiB", "NPU out of memory. Tried",
                              "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.", "DefaultCPUAllocator: can't allocate memory",
                              "MPS backend out of memory (MPS allocated: 0 bytes)"}) {
    CHECK(counts_as_out_of_memory([&] { throw std::runtime_error(message); }));
    CHECK_FALSE(counts_as_out_of_memory([&] { throw std::invalid_argument(message); }));
  }
  for (const auto* message : {"CUDA out of memory", "CUDNN error: CUDNN_STATUS_NOT_SUPPORTED.", "Out of memory."})
    CHECK_FALSE(counts_as_out_of_memory([&] { throw std::runtime_error(message); }));
}

TEST_CASE("the sizes are those of Accelerate, and the body's result is returned") {
  Accelerator accelerator;
  std::vector<std::int64_t> tried;
  const auto result = find_executable_batch_size(accelerator, {.start = 20}, [&](std::int64_t batch_size) {
    tried.push_back(batch_size);
    if (batch_size > 14) throw_out_of_memory();
    return std::make_unique<std::string>("fits");
  });
  CHECK(*result == "fits");
  CHECK(tried == std::vector<std::int64_t>{20, 18, 16, 14});
  const auto halves = [](std::int64_t size) { return size / 2; };
  const auto found =
      find_executable_batch_size(accelerator, {.start = 20, .next = halves}, [](std::int64_t batch_size) {
        if (batch_size > 5) throw_out_of_memory();
      });
  CHECK(found == 5);
}

TEST_CASE("out-of-memory errors are recognised by type and by message") {
  CHECK(counts_as_out_of_memory([] { throw_out_of_memory(); }));
  CHECK(counts_as_out_of_memory([] { at::empty({std::int64_t{1} << 55}); }));
  CHECK(counts_as_out_of_memory([] { throw std::runtime_error("HIP out of memory. Tried to allocate 2 GiB"); }));
  CHECK(counts_as_out_of_memory([] {
    try {
      throw_out_of_memory();
    } catch (...) {
      std::throw_with_nested(std::runtime_error("sample 3 cannot be read"));
    }
  }));
  CHECK_FALSE(counts_as_out_of_memory([] { throw std::runtime_error("out of luck"); }));
  CHECK_FALSE(counts_as_out_of_memory([] { throw std::runtime_error("Out Of Memory."); }));
  CHECK_FALSE(counts_as_out_of_memory([] { at::ones({2}).view({3}); }));
  CHECK_FALSE(counts_as_out_of_memory([] { throw 3; }));
}

TEST_CASE("if one rank runs out of memory, all ranks retry with the same smaller size") {
  Accelerator accelerator;
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    std::vector<std::int64_t> tried;
    const auto found = find_executable_batch_size(accelerator, {.start = 10}, [&](std::int64_t batch_size) {
      tried.push_back(batch_size);
      if (batch_size > 8 && accelerator.process_index() == rank) throw_out_of_memory();
    });
    CHECK(found == 8);
    CHECK(tried == std::vector<std::int64_t>{10, 9, 8});
  }
  CHECK(accelerator.gather(at::ones({1})).numel() == accelerator.num_processes());
}

TEST_CASE("ranks that wait in a collective are released when another rank runs out of memory") {
  Accelerator accelerator;
  const int n = accelerator.num_processes();
  int released = 0;
  const auto sum = find_executable_batch_size(accelerator, {.start = 10}, [&](std::int64_t batch_size) {
    if (batch_size > 8 && accelerator.is_last_process()) throw_out_of_memory();
    try {
      return accelerator.reduce(at::full({1000}, batch_size))[999].item<double>();
    } catch (const comm::Abandoned&) {
      ++released;
      throw;
    }
  });
  CHECK(sum == 8 * n);
  CHECK(released == (accelerator.is_last_process() ? 0 : 2));
}

TEST_CASE("if a rank runs out of memory within a training step, all ranks retry, and training succeeds") {
  Accelerator accelerator;
  const auto last = accelerator.num_processes() - 1;
  for (const int rank : {0, last}) {
    const auto loss = find_executable_batch_size(accelerator, {.start = 5}, [&](std::int64_t batch_size) {
      return train_three_passes(accelerator, batch_size, [&] {
        if (batch_size > 3 && accelerator.process_index() == rank) throw_out_of_memory();
      });
    });
    CHECK(std::isfinite(loss));
  }
}

TEST_CASE("ranks that wait for a layer's statistics are released when another rank runs out of memory") {
  Accelerator accelerator;
  const auto sum = find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t batch_size) {
    Normed net;
    auto model = accelerator.prepare(net);
    const auto input = at::ones({batch_size, 3}) * accelerator.process_index();
    model(input);
    if (batch_size > 2 && accelerator.is_last_process()) throw_out_of_memory();
    return model(input).sum().item<double>();
  });
  CHECK(std::isfinite(sum));
}

TEST_CASE("ranks that wait for their shard group or its replicas are released when another rank runs out of memory") {
  const int ranks = State().num_processes();
  const int group = ranks % 2 == 0 ? ranks / 2 : 1;
  for (const int stage : {1, 2, 3}) {
    Accelerator accelerator({.zero = {.stage = stage, .shard_group = group}});
    const auto loss = find_executable_batch_size(accelerator, {.start = 4}, [&](std::int64_t batch_size) {
      return train_three_passes(accelerator, batch_size, [&] {
        if (batch_size > 2 && accelerator.is_last_process()) throw_out_of_memory();
      });
    });
    INFO("stage " << stage);
    CHECK(std::isfinite(loss));
  }
}

TEST_CASE("prepared objects are freed between two tries") {
  Accelerator accelerator;
  test::Net net;
  auto model = accelerator.prepare(net);
  find_executable_batch_size(accelerator, {.start = 2}, [&](std::int64_t batch_size) {
    if (batch_size == 2) throw_out_of_memory();
    CHECK_THROWS_WITH(model(at::ones({1, 3})), ContainsSubstring("had freed it"));
  });
}

TEST_CASE("if no size fits, all ranks throw; searches that would not end are refused") {
  Accelerator accelerator;
  const auto never = [](std::int64_t) { throw_out_of_memory(); };
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 3}, never),
                    ContainsSubstring("No batch size fits into memory, from 3 down"));
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 0}, never), ContainsSubstring("No batch size"));
  const auto same = [](std::int64_t size) { return size; };
  CHECK_THROWS_WITH(find_executable_batch_size(accelerator, {.start = 3, .next = same}, never),
                    ContainsSubstring("next(3) is 3"));
}

TEST_CASE("other exceptions keep their type") {
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
