#include "observe/progress/progress_bar.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using observe::Clock;

namespace {

struct Stage {
  Clock::time_point now{1h};
  observe::Pace::Medium medium = observe::Pace::Medium::log;
  std::vector<std::string> shown = {};
};

// Records the shown lines; "--" for a line that stays.
struct NotedScreen final : observe::Screen {
  explicit NotedScreen(Stage& stage) : stage_(stage) {}
  observe::Pace::Medium medium() const override { return stage_.medium; }
  int columns() const override { return 60; }
  void show(const std::string& line) override { stage_.shown.push_back(line); }
  void keep() override { stage_.shown.emplace_back("--"); }
  Stage& stage_;
};

std::unique_ptr<ProgressSink> make_bar(Stage& stage) {
  return std::make_unique<observe::ProgressBar>(std::make_unique<NotedScreen>(stage), [&stage] { return stage.now; });
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a log gets lines at intervals and one at the end, with the current numbers") {
  Stage stage;
  const auto bar = make_bar(stage);
  bar->start("epoch 0", 12, 0);
  for (int step = 1; step <= 12; ++step) {
    stage.now += 1s;
    bar->set("loss", 1.0 / step);
    bar->advance();
  }
  bar->set("loss", at::full({}, 0.5));
  bar->set("done", true);
  bar->finish();
  CHECK(stage.shown == Lines{"epoch 0: 5/12 (41%), 1/s, 0:05, 0:07 left, loss 0.2",
                             "epoch 0: 10/12 (83%), 1/s, 0:10, 0:02 left, loss 0.1",
                             "epoch 0: 12/12 (100%), 1/s, 0:12, loss 0.5, done 1", "--"});
}

TEST_CASE("a resumed loop continues at its step, with the rate of its own steps") {
  Stage stage;
  const auto bar = make_bar(stage);
  bar->start("epoch 0", 20, 10);
  for (int step = 0; step < 6; ++step) {
    stage.now += 1s;
    bar->advance();
  }
  bar->finish();
  CHECK(stage.shown == Lines{"epoch 0: 15/20 (75%), 1/s, 0:05, 0:05 left", "epoch 0: 16/20 (80%), 1/s, 0:06", "--"});
}

TEST_CASE("a terminal shows the bar from the start") {
  Stage stage{.medium = observe::Pace::Medium::terminal};
  const auto bar = make_bar(stage);
  bar->start("", 2, 0);
  stage.now += 50ms;
  bar->advance();
  stage.now += 50ms;
  bar->advance();
  bar->finish();
  CHECK(stage.shown == Lines{"  0% [>                             ]  0/2  0:00",
                             "100% [=========================]  2/2  20/s  0:00, 0:00 left",
                             "100% [==============================]  2/2  20/s  0:00", "--"});
}

TEST_CASE("a nested loop is shown until it ends") {
  Stage stage{.medium = observe::Pace::Medium::terminal};
  const auto bar = make_bar(stage);
  bar->start("outer", 2, 0);
  bar->start("inner", 1, 0);
  bar->finish();
  stage.now += 1s;
  bar->advance();
  bar->finish();
  const Lines expected = {"outer   0%", "--", "inner   0%", "inner   0%", "--", "outer  50%", "outer  50%", "--"};
  REQUIRE(stage.shown.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(stage.shown[i].substr(0, 10) == expected[i]);
}

TEST_CASE("a loop that ends by an exception keeps its last line, and no tensor is read") {
  Stage stage;
  const auto bar = make_bar(stage);
  const auto shared = at::full({}, 1.0);
  try {
    struct Loop {
      ProgressSink& sink;
      ~Loop() { sink.finish(); }
    } loop{*bar};
    bar->start("", 10, 0);
    stage.now += 5s;
    bar->set("loss", shared);
    bar->advance();
    shared.fill_(2.0);
    throw std::runtime_error("lost");
  } catch (const std::runtime_error&) {
  }
  CHECK(stage.shown ==
        Lines{"1/10 (10%), 5 s each, 0:05, 0:45 left, loss 1", "1/10 (10%), 5 s each, 0:05, loss 1", "--"});
}

TEST_CASE("destroying a bar ends its loops") {
  Stage stage;
  {
    const auto bar = make_bar(stage);
    bar->start("a", 1, 0);
    bar->start("b", 1, 0);
  }
  CHECK(stage.shown == Lines{"--", "b: 0/1 (0%), 0:00", "--", "a: 0/1 (0%), 0:00", "--"});
}

TEST_CASE("numbers of all types can be logged, a tensor without its graph and only with one element") {
  CHECK(Loggable(3).value() == 3);
  CHECK(Loggable(2.5F).value() == 2.5);
  CHECK(Loggable(true).value() == 1);
  CHECK(Loggable(std::size_t{7}).value() == 7);
  CHECK(Loggable(at::full({1}, 4, at::kLong)).value() == 4);
  CHECK(Loggable(at::full({}, 1.5, at::kBFloat16)).value() == 1.5);
  const auto weight = at::full({}, 3.0).requires_grad_();
  auto loss = weight * weight;
  const auto graph = loss.grad_fn().use_count();
  const Loggable kept(loss);
  CHECK(loss.grad_fn().use_count() == graph);
  CHECK(kept.value() == 9);
  CHECK_THROWS_WITH(Loggable(at::zeros({2, 5})), ContainsSubstring("Cannot log a tensor of 10 elements"));
  CHECK_THROWS_WITH(Loggable(at::Tensor()), ContainsSubstring("Cannot log an undefined tensor"));
}

TEST_CASE("a step costs next to nothing") {
  const auto bar = observe::make_progress(observe::Audience::people);
  const auto loss = at::full({}, 3.0).requires_grad_() * 1.0;
  const auto cost = [&](auto&& step) {
    double best = 1e9;
    for (int block = 0; block < 20; ++block) {
      const auto begin = Clock::now();
      for (int i = 0; i < 1000; ++i) step();
      best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / 1000);
    }
    return best;
  };
  bar->start("cost", 1'000'000, 0);
  const double advance = cost([&] { bar->advance(); });
  const double set = cost([&] { bar->set("loss", loss); });
  // Compared with a loop that only keeps its loss, in the same build: a sanitizer slows down both.
  at::Tensor kept;
  const double keep = cost([&] { kept = loss.detach(); });
  INFO("advance " << advance << " ns, set of a tensor " << set << " ns, detach alone " << keep << " ns");
  CHECK(advance < 200);
  CHECK(set < 2 * keep);
}
