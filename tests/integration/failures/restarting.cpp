// Trains a little on data of its own, saves after each update, and resumes. Fails as its arguments ask, one a start:
// HOW@UPDATE, where HOW is kill, crash, index, network, odd or usage, and the last rank fails after UPDATE updates. The
// file `starts` counts the starts.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <iostream>
#include <string>

namespace {

constexpr int updates = 12;

int starts_before(const hortator::State& state) {
  int starts = 0;
  std::ifstream("starts") >> starts;
  state.wait_for_everyone();
  if (state.is_main_process()) std::ofstream("starts") << starts + 1 << '\n';
  return starts;
}

[[noreturn]] void fail(const std::string& how) {
  if (how == "kill") std::raise(SIGKILL);
  if (how == "crash") std::raise(SIGSEGV);
  if (how == "index") throw std::out_of_range("the token 50257 is out of range");
  if (how == "network") throw std::runtime_error("connection refused");
  if (how == "usage") throw hortator::UsageError({.what = "the learning rate is -1", .hint = "use one above 0"});
  throw std::runtime_error("an odd error, number " + std::to_string(std::rand()));
}

void train(const std::string& failure) {
  hortator::Accelerator accelerator({.project = {.iteration = 0}});
  torch::nn::Linear net(4, 1);
  torch::optim::SGD sgd(net->parameters(), 0.01);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  struct Count {
    std::int64_t done = 0;
    void save(hortator::StateWriter& out) const { out.put("done", done); }
    void load(const hortator::StateReader& in) { done = in.get<std::int64_t>("done"); }
  } count;
  auto& done = count.done;
  accelerator.register_for_checkpointing("count", count);
  if (accelerator.has_checkpoint()) accelerator.load_state();
  const auto how = failure.substr(0, failure.find('@'));
  const int at = how.size() < failure.size() ? std::stoi(failure.substr(how.size() + 1)) : -1;
  while (done < updates) {
    if (done == at && accelerator.is_last_process()) fail(how);
    accelerator.backward(model(torch::ones({2, 4})).sum());
    optimizer.step();
    optimizer.zero_grad();
    ++done;
    accelerator.log({{"loss", 1.0 / done}}, done);
    accelerator.save_state();
  }
  if (accelerator.is_main_process()) std::cout << "finished after " << done << " updates\n";
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const int start = starts_before(hortator::State());
    train(start + 1 < argc ? argv[start + 1] : "");
  });
}
