// saving [asynchronous] SAVES: first loads the checkpoint of an earlier run, if any, and checks that it is one complete
// version; then saves SAVES new versions, each replacing the previous one. Prints the versions that it loads and saves.
// saving [asynchronous] faults: for each fault of FAULT_SERIES (support/faults, preloaded), saves two versions and
// loads the checkpoint; prints the same, after the name of the fault.
#include <dlfcn.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <hortator/hortator.hpp>
#include <iostream>

using namespace hortator;

namespace {

struct Version {
  std::int64_t number = 0;
  void save(StateWriter& out) const { out.put("number", number); }
  void load(const StateReader& in) { number = in.get<std::int64_t>("number"); }
};

void fill(torch::nn::Module& net, std::int64_t number) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net.parameters()) parameter.fill_(static_cast<double>(number));
}

void check(const torch::nn::Module& net, std::int64_t number) {
  for (const auto& parameter : net.parameters()) {
    if (parameter.eq(static_cast<double>(number)).all().item<bool>()) continue;
    throw std::runtime_error("some loaded parameters are not of version " + std::to_string(number));
  }
}

void print_on_main(const Accelerator& accelerator, const std::string& what) {
  accelerator.on_main_process([&] { std::cout << what << std::endl; });
}

// Saves; prints a failure with the time that it took, after `prefix`, and continues.
void save(Accelerator& accelerator, std::int64_t number, const std::string& prefix = "") {
  const auto begin = std::chrono::steady_clock::now();
  try {
    accelerator.save_state();
    accelerator.wait_for_checkpoint();
    print_on_main(accelerator, prefix + "saved " + std::to_string(number));
  } catch (const Error& problem) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << prefix + "rank " + std::to_string(accelerator.process_index()) + " after " +
                     std::to_string(took.count()) + " s: " + problem.what() + "\n"
              << std::flush;
  }
}

void load(Accelerator& accelerator, const torch::nn::Module& net, const Version& version,
          const std::string& prefix = "") {
  accelerator.load_state();
  check(net, version.number);
  print_on_main(accelerator, prefix + "loaded " + std::to_string(version.number));
}

void save_with_faults(Accelerator& accelerator, torch::nn::Module& net, Version& version) {
  const auto next_fault = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "hortator_next_fault"));
  if (next_fault == nullptr) throw std::runtime_error("the library of support/faults is not preloaded");
  while (const char* fault = next_fault()) {
    const auto prefix = std::string(fault) + " ";
    for (int i = 0; i < 2; ++i) {
      fill(net, ++version.number);
      save(accelerator, version.number, prefix);
    }
    load(accelerator, net, version, prefix);
  }
}

void run_saves(const std::string& saves, bool asynchronous) {
  Accelerator accelerator({.project = {.dir = "run"}, .checkpoint = {.asynchronous = asynchronous}});
  torch::nn::Linear net(300, 1000);
  Version version;
  auto model = accelerator.prepare(net);
  accelerator.register_for_checkpointing("version", version);
  if (accelerator.has_checkpoint()) load(accelerator, *net, version);
  if (saves == "faults") return save_with_faults(accelerator, *net, version);
  for (std::int64_t i = 0; i < std::stoll(saves); ++i) {
    fill(*net, ++version.number);
    save(accelerator, version.number);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool asynchronous = !arguments.empty() && arguments.front() == "asynchronous";
  return run(argc, argv, [&] { run_saves(arguments.at(asynchronous ? 1 : 0), asynchronous); });
}
