// A model in two shards is saved over another one with the same names while every call that changes a file fails in
// turn.
#include <ATen/ops/full.h>

#include <algorithm>
#include <cerrno>

#include "disk.hpp"
#include "forks.hpp"
#include "formats/safetensors/writer.hpp"
#include "kills.hpp"
#include "support/catch.hpp"
#include "weights/weight_folder.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using faults::Kind;
using test::count_calls;
using test::fresh_folder;
using test::in_fork;
namespace fs = std::filesystem;

namespace {

void save_weights(const fs::path& target, int number) {
  const std::vector<weights::WeightToSave> weights = {{.name = "a", .bytes = 40}, {.name = "b", .bytes = 40}};
  const auto shards = weights::shard_weights(weights, 40);
  weights::WeightFolder folder(target, "id" + std::to_string(number), {});
  try {
    folder.begin();
    std::vector<formats::SafetensorsOutput> files;
    for (const auto& file : shards.files) {
      files.push_back({.path = folder.aside(file.name),
                       .plan = formats::plan_safetensors({{weights[file.weights.front()].name, {.shape = {10}}}})});
    }
    formats::write_safetensors(mpi::Communicator::world(), files,
                               [&](const std::string& /*name*/) { return at::full({10}, number, at::kFloat); });
    folder.publish(shards, weights);
  } catch (...) {
    folder.abandon(shards);
    throw;
  }
}

/// The number of the complete model; 0 for a mixture. Throws if none can be opened.
int weights_version_in(const fs::path& folder) {
  const auto source = weights::open_weights(folder);
  std::vector<float> numbers;
  for (const auto* name : {"a", "b"}) {
    numbers.resize(numbers.size() + 10);
    source->read(name, {0, 10}, reinterpret_cast<std::byte*>(numbers.data() + numbers.size() - 10));
  }
  const bool is_one = std::all_of(numbers.begin(), numbers.end(), [&](float one) { return one == numbers.front(); });
  return is_one ? static_cast<int>(numbers.front()) : 0;
}

}  // namespace

TEST_CASE("a kill at any point leaves the older model or the newer one") {
  const auto root = fresh_folder();
  const auto folder = root / "model";
  test::check_kills_of_overwrite(
      {.root = root,
       .save = [=](int number) { save_weights(folder, number); },
       .found = [=] { return weights_version_in(folder); },
       .exists = [=] { return weights::holds_weights(folder); },
       .check = [=] { CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 3); }});
}

TEST_CASE("a saved model and the folders created for it survive a power failure") {
  const auto root = fresh_folder();
  faults::arm(root.string(), {.kind = Kind::record});
  save_weights(root / "new" / "deeper" / "model", 1);
  faults::disarm();
  test::Disk disk;
  const auto calls = faults::recorded();
  for (const auto& call : calls) disk.follow(call);
  CHECK(std::count_if(calls.begin(), calls.end(), [](const auto& call) { return call.what == "make"; }) == 3);
  for (const auto& lost : disk.loses_of(root)) FAIL_CHECK(lost);
}

TEST_CASE("a failing call leaves a complete model, and the next save works") {
  const auto root = fresh_folder();
  const auto folder = root / "model";
  save_weights(folder, 1);
  const auto calls = count_calls(root, [&] { save_weights(folder, 2); });
  for (const bool on : {false, true}) {
    int thrown = 0;
    for (long at = 1; at <= calls; ++at) {
      INFO("no space at call " << at << " of " << calls << (on ? " and all after it" : ""));
      fresh_folder();
      save_weights(folder, 1);
      thrown += in_fork([&] {
        faults::arm(root.string(), {.kind = Kind::error, .at = at, .error = ENOSPC, .on = on});
        try {
          save_weights(folder, 2);
        } catch (const Error&) {
          return 1;
        }
        return 0;
      });
      const auto found = weights_version_in(folder);
      CHECK((found == 1 || found == 2));
      save_weights(folder, 3);
      CHECK(weights_version_in(folder) == 3);
    }
    CHECK(thrown > calls / 2);
  }
}
