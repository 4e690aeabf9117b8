#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "accelerator/training/run_status.hpp"
#include "core/process.hpp"
#include "machine/device/device.hpp"
#include "observe/status/measure.hpp"
#include "observe/status/status_record.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::content_of;
using namespace std::chrono_literals;

TEST_CASE("a run of some seconds writes a row per rank") {
  const State state;
  const test::Folder folder(state, "told");
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    test::Net net;
    torch::optim::SGD sgd(net->parameters(), 0.1);
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(test::Rows{64}, {.batch_size = 1}));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "status"));
    int step = 0;
    for (auto& batch : accelerator.progress(loader, "epoch 0")) {
      auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      if (state.is_main_process()) accelerator.log({{"loss", 0.25}});
      std::this_thread::sleep_for(100ms);
      if (++step == 14) break;
    }
    accelerator.save_state();
    for ([[maybe_unused]] const int step : accelerator.progress(std::vector<int>(5), "last")) {
      accelerator.wait_for_everyone();
    }
    accelerator.end_training();
  }
  state.wait_for_everyone();
  const auto rows = content_of(folder.path() / "status" / "ranks.jsonl");
  REQUIRE(rows.size() == observe::row_bytes * static_cast<std::size_t>(state.num_processes()));
  for (int rank = 0; rank < state.num_processes(); ++rank) {
    const auto status = observe::parse_status(
        std::string_view(rows).substr(static_cast<std::size_t>(rank) * observe::row_bytes, observe::row_bytes));
    REQUIRE(status);
    CHECK(status->rank == rank);
    CHECK(status->world == state.num_processes());
    CHECK(status->updates == 14);
    REQUIRE(status->loops.size() == 1);
    CHECK(status->loops[0].title == "last");
    CHECK(status->loops[0].done == 5);  // not where the loop was when the row before was written
    CHECK(status->loops[0].total == 5);
    CHECK_FALSE(core::has_ended(status->process));
    CHECK(status->is_over);
    CHECK(status->updates_per_second > 2);
    CHECK(status->updates_per_second < 11);
    CHECK(status->memory_bytes > 10 << 20);
    CHECK(status->save.has_value());
    CHECK((rank != 0 || status->values == std::vector<std::pair<std::string, double>>{{"loss", 0.25}}));
  }
  const auto session = observe::parse_session(content_of(folder.path() / "status" / "sessions.jsonl"));
  REQUIRE(session);
  CHECK(session->world == state.num_processes());
  CHECK_FALSE(session->resumed_after.has_value());
  state.wait_for_everyone();
}

TEST_CASE("a run of less than a second writes a row at its end if it has saved something, and otherwise none") {
  const State state;
  const test::Folder folder(state, "short");
  const auto run = folder.path() / "run";
  for (const bool saves : {false, true}) {
    {
      Accelerator accelerator({.project = {.dir = run}});
      test::Net net;
      torch::optim::SGD sgd(net->parameters(), 0.1);
      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(test::Rows{4}, {.batch_size = 1}));
      const auto batch = *loader.begin();
      accelerator.backward(at::mse_loss(model(batch.data), batch.target));
      optimizer.step();
      if (saves) accelerator.save_state();
    }
    state.wait_for_everyone();
    const auto rows = content_of(run / "status" / "ranks.jsonl");
    CHECK(rows.size() == (saves ? observe::row_bytes * static_cast<std::size_t>(state.num_processes()) : 0));
    const auto status = observe::parse_status(std::string_view(rows).substr(0, observe::row_bytes));
    CHECK(status.has_value() == saves);
    CHECK((!status || (status->is_over && status->updates == 1 && status->updates_per_second > 0)));
    state.wait_for_everyone();
  }
}

TEST_CASE("a resumed run counts the updates of the run before it") {
  const State state;
  const test::Folder folder(state, "continued");
  const auto run = folder.path() / "run";
  for (const std::int64_t updates : {1, 2}) {
    {
      Accelerator accelerator({.project = {.dir = run}});
      test::Net net;
      torch::optim::SGD sgd(net->parameters(), 0.1);
      auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(test::Rows{64}, {.batch_size = 1}));
      if (accelerator.has_checkpoint()) accelerator.load_state();
      const auto batch = *loader.begin();
      accelerator.backward(at::mse_loss(model(batch.data), batch.target));
      optimizer.step();
      accelerator.save_state();
    }
    state.wait_for_everyone();
    const auto rows = content_of(run / "status" / "ranks.jsonl");
    const auto status = observe::parse_status(std::string_view(rows).substr(0, observe::row_bytes));
    REQUIRE(status);
    CHECK(status->updates == updates);
    state.wait_for_everyone();
  }
}

TEST_CASE("status rows cost less than 0.5 % of the time") {
  const State state;
  const test::Folder folder(state, "cost");
  accelerator::RunStatus status(state.world(), folder.path());
  constexpr int times = 200;
  status.write({});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) status.write({.values = {{"loss", 0.1 * i}}});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
  INFO(seconds * 1e6 << " us each, every " << accelerator::status_interval(0, 1) << " s");
  CHECK(seconds < 0.005 * accelerator::status_interval(state.process_index(), state.num_processes()));
}

TEST_CASE("in large jobs ranks write less often, except for the main rank") {
  CHECK(accelerator::status_interval(0, 4096) == 1);
  CHECK(accelerator::status_interval(1, 64) == 1);
  CHECK(accelerator::status_interval(1, 4096) == 64);
}

TEST_CASE("a run measures its updates on request") {
  const State state;
  const test::Folder folder(state, "measured");
  const auto file = folder.path() / "measure.json";
  setenv("HORTATOR_MEASURE", file.c_str(), 1);
  double all = 0;
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    test::Net net;
    auto model = accelerator.prepare(net);
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < 20; ++step) {
      accelerator.backward(model(at::ones({1, 3})).sum());
      std::this_thread::sleep_for(10ms);
    }
    all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    accelerator.end_training();
  }
  unsetenv("HORTATOR_MEASURE");
  if (!state.is_main_process()) return;
  const auto measure = observe::parse_measure(content_of(file));
  REQUIRE(measure);
  CHECK(measure->updates == 20);
  CHECK(measure->ranks == state.num_processes());
  CHECK(measure->seconds_per_update >= 0.01);
  CHECK(measure->seconds_per_update <= all / 16);  // without the first few
  CHECK(measure->gradient_bytes == 4 * (3 * 4 + 4 + 4 + 1));
  CHECK(measure->flops_per_update == 2 * (12 + 4) + 2 * (12 + 4) + 2 * 4);  // forward, of weights, of the middle
  CHECK(measure->device == (state.device().is_cpu() ? "" : machine::identify(state.device()).name));
  CHECK_THAT(measure->identity, ContainsSubstring("hortator"));
}
